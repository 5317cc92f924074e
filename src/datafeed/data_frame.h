#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "datafeed/arrow_c_data.h"
#include "datafeed/frame_column.h"

namespace millrace {

/// A part of the rows of a frame.
struct FramePart {
  std::shared_ptr<const ArrowOwner<ArrowSchema>> schema;
  ArrowOwner<ArrowArray> array;
  std::vector<FrameColumn> columns;
};

/// Rows in memory whose columns have names: what a data frame is. Constant; any thread.
class DataFrame {
 public:
  /// Takes the rows of a stream over as they lie in memory, to its end, which asks the stream's library for each part.
  /// `name` is what messages call it. kBadData for what the library says, and for what are no columns; kCancelled.
  /// `units`: of columns whose texts are times with an offset from UTC, by their names.
  static Result<std::shared_ptr<const DataFrame>> Take(ArrowOwner<ArrowArrayStream> stream, std::string name,
                                                       const std::stop_token& stop = {},
                                                       const std::map<std::string, std::string>& units = {});

  /// Of columns that are here already: a struct, and its values in parts.
  static Result<std::shared_ptr<const DataFrame>> Create(ArrowOwner<ArrowSchema> schema,
                                                         std::vector<ArrowOwner<ArrowArray>> parts, std::string name,
                                                         const std::map<std::string, std::string>& units = {});

  /// The rows of frames one behind the other, which stay where they are. kBadData where one has other columns than the
  /// first, or has them in another order.
  static Result<std::shared_ptr<const DataFrame>> Join(const std::vector<std::shared_ptr<const DataFrame>>& frames,
                                                       std::string name);

  /// Where in columns() each of `wanted` is. kBadData, with every mistake, for those that it lacks, has twice, or makes
  /// no texts of.
  Result<std::vector<size_t>> FindColumns(std::span<const std::string> wanted) const;

  const std::string& name() const { return name_; }
  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<std::shared_ptr<const FramePart>>& parts() const { return parts_; }
  int64_t rows() const { return rows_; }
  /// The rows' number, names and a part of their values, the first and the last ones: differs, as a rule, from that of
  /// other rows. Reads some thousand rows.
  uint32_t Checksum() const;

 private:
  DataFrame() = default;

  std::string name_;
  std::vector<std::string> columns_;
  std::vector<std::shared_ptr<const FramePart>> parts_;
  int64_t rows_ = 0;
};

}  // namespace millrace
