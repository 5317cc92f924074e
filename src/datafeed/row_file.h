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

/// Reads the rows of one file of any format: a data feed class at the level of files, where DataFeed is at the level of
/// lines. The dataset provides commands, decompression, threads, shuffles, resuming and the bad-row policy. One thread
/// at a time reads a file, from start to end.
class RowFile {
 public:
  enum class Got : uint8_t {
    kRow,
    kBad,  ///< an unusable row, explained by error(); reading can continue
    kEnd
  };

  virtual ~RowFile() = default;
  /// Reads the next row. A failure ends the run, because the next row cannot be found. Failures of the byte source are
  /// returned unchanged; others describe the fault without a position, which the caller adds.
  virtual Result<Got> Next(const std::stop_token& stop) = 0;
  /// The row's values of a used slot of this type, valid until the next call.
  virtual std::span<const uint64_t> ids(SlotId slot) const = 0;
  virtual std::span<const float> floats(SlotId slot) const = 0;
  /// The error of a bad row.
  virtual const LineError& error() const = 0;
};

/// Opens `file`: `bytes` is its content, decompressed, or the output of pipe_command. Can leave reading to Next, which
/// can be stopped. Any thread.
using RowFileOpener =
    std::function<Result<std::unique_ptr<RowFile>>(std::unique_ptr<ByteSource> bytes, const std::string& file)>;

/// A data feed class at the level of files: creates the opener for this schema and desc, which outlive it. Reads
/// nothing. Fails with kInvalidConfig for an unsupported setting.
using RowFileMaker = std::function<Result<RowFileOpener>(const SlotSchema& schema, const DataFeedDesc& desc)>;

}  // namespace millrace
