#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/line_blocks.h"
#include "reader/jpeg_folder.h"
#include "reader/record_stream.h"

namespace millrace {

/// A picture's file as a record.
struct PictureRecord {
  int64_t label = 0;
  std::string_view path;
  std::string_view bytes;    ///< of the file
  bool is_too_long = false;  ///< the file exceeds the limit; `bytes` is empty

  /// Decodes a record of PictureRecords; the result refers to it.
  static PictureRecord Of(std::string_view record);
};

/// Reads the files of pictures, one per record, without decoding. Stops reading a file at `limit.bytes`. Failures name
/// the file.
std::unique_ptr<RecordSource> PictureRecords(std::vector<LabelledPicture> pictures, const LineLimit& limit);

}  // namespace millrace
