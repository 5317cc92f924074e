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

/// Some rows of a frame.
struct FramePart {
  std::shared_ptr<const ArrowOwner<ArrowSchema>> schema;
  ArrowOwner<ArrowArray> array;
  std::vector<FrameColumn> columns;
};

/// Rows in memory with named columns: a data frame. Immutable; any thread.
class DataFrame {
 public:
  /// Takes all rows of a stream without copying; asks the stream's library for each part. `name` appears in messages.
  /// `units`: by column name, the unit of strings that are times with an offset from UTC. Fails with kBadData if the
  /// library fails or rows have no columns, kCancelled after a stop request.
  static Result<std::shared_ptr<const DataFrame>> Take(ArrowOwner<ArrowArrayStream> stream, std::string name,
                                                       const std::stop_token& stop = {},
                                                       const std::map<std::string, std::string>& units = {});

  /// Creates a frame from existing columns: a struct type, and its values in parts. Fails with kBadData if there are no
  /// named columns, a part has another number of columns, or whole rows are null.
  static Result<std::shared_ptr<const DataFrame>> Create(ArrowOwner<ArrowSchema> schema,
                                                         std::vector<ArrowOwner<ArrowArray>> parts, std::string name,
                                                         const std::map<std::string, std::string>& units = {});

  /// Concatenates frames without copying. Fails with kBadData if one has other columns than the first, or another
  /// order.
  static Result<std::shared_ptr<const DataFrame>> Join(const std::vector<std::shared_ptr<const DataFrame>>& frames,
                                                       std::string name);

  /// Indices in columns() of `wanted`. Fails with kBadData, listing every mistake, for columns that are missing,
  /// duplicated or of a type without text form.
  Result<std::vector<size_t>> FindColumns(std::span<const std::string> wanted) const;

  const std::string& name() const { return name_; }
  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<std::shared_ptr<const FramePart>>& parts() const { return parts_; }
  int64_t rows() const { return rows_; }
  /// A checksum of the row count, the names, and the first and last values. Usually differs for other rows. Reads a few
  /// thousand rows.
  uint32_t Checksum() const;

 private:
  DataFrame() = default;

  std::string name_;
  std::vector<std::string> columns_;
  std::vector<std::shared_ptr<const FramePart>> parts_;
  int64_t rows_ = 0;
};

}  // namespace millrace
