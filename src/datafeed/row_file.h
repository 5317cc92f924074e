#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "batch/slot_schema.h"
#include "core/byte_source.h"
#include "core/status.h"
#include "datafeed/line_error.h"

namespace millrace {

class DataFeedDesc;

/// Reads the rows of one file, whatever its bytes are: a class of data feed at the level of files (DataFeed is one at
/// the level of lines). Commands, packed files, threads, shuffles, resuming and what becomes of bad rows are the
/// dataset's; a file is read by one thread at a time, from its start to its end.
class RowFile {
 public:
  enum class Got : uint8_t {
    kRow,
    kBad,  ///< a row that cannot be used, as error() says; the next one can be read
    kEnd
  };

  virtual ~RowFile() = default;
  /// Reads the next row. A failure ends the run: behind it nothing says where a row begins. One of the file's bytes is
  /// returned as it came; others say what is wrong, and not where: file and row are known.
  virtual Result<Got> Next(const std::stop_token& stop) = 0;
  /// The values that the row has of a used slot of this type, until the next call.
  virtual std::span<const uint64_t> ids(SlotId slot) const = 0;
  virtual std::span<const float> floats(SlotId slot) const = 0;
  /// What is wrong with a bad row.
  virtual const LineError& error() const = 0;
};

/// Begins to read `file`: `bytes` is what is in it, unpacked, or what pipe_command made of it. May leave reading to
/// Next, which can be stopped. Called by any thread.
using RowFileOpener =
    std::function<Result<std::unique_ptr<RowFile>>(std::unique_ptr<ByteSource> bytes, const std::string& file)>;

/// A class of data feed at the level of files: what reads the files of this schema and desc, both of which outlive it.
/// kInvalidConfig for what in them it cannot follow. Reads nothing.
using RowFileMaker = std::function<Result<RowFileOpener>(const SlotSchema& schema, const DataFeedDesc& desc)>;

}  // namespace millrace
