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
  bool is_too_long = false;  ///< it has more bytes than records may have; none are here

  /// Reads a record of PictureRecords, which it refers to.
  static PictureRecord Of(std::string_view record);
};

/// Reads pictures' files, a record each: what is decoded where is the business of others. A file of more than
/// `limit.bytes` is not read to its end. A failure to read one names it.
std::unique_ptr<RecordSource> PictureRecords(std::vector<LabelledPicture> pictures, const LineLimit& limit);

}  // namespace millrace
