#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "datafeed/arrow_c_data.h"
#include "datafeed/frame_column.h"

namespace millrace {

/// A part of the rows of a frame.
struct FramePart {
  ArrowOwner<ArrowArray> array;
  std::vector<FrameColumn> columns;
};

/// Rows in memory whose columns have names: what a data frame is. Constant; any thread.
class DataFrame {
 public:
  /// Takes the rows of a stream over as they lie in memory, to its end, which asks the stream's library for each part.
  /// `name` is what messages call it. kBadData for what the library says, and for what are no columns; kCancelled.
  static Result<std::shared_ptr<const DataFrame>> Take(ArrowOwner<ArrowArrayStream> stream, std::string name,
                                                       const std::stop_token& stop = {});

  /// Of columns that are here already: a struct, and its values in parts.
  static Result<std::shared_ptr<const DataFrame>> Create(ArrowOwner<ArrowSchema> schema,
                                                         std::vector<ArrowOwner<ArrowArray>> parts, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<FramePart>& parts() const { return parts_; }
  int64_t rows() const { return rows_; }
  /// What the column holds, for messages.
  const std::string& TypeOf(size_t column) const { return types_[column]; }
  /// The rows' number, names and a part of their values, the first and the last ones: differs, as a rule, from that of
  /// other rows. Reads some thousand rows.
  uint32_t Checksum() const;

 private:
  DataFrame() = default;

  std::string name_;
  ArrowOwner<ArrowSchema> schema_;
  std::vector<std::string> columns_;
  std::vector<std::string> types_;
  std::vector<FramePart> parts_;
  int64_t rows_ = 0;
};

}  // namespace millrace
