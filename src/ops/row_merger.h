#pragma once

#include <vector>

#include "runtime/tensor.h"
#include "table/unique_keys.h"

namespace millrace {

/// Adds the gradients of equal rows of a SelectedRows, in the order in which they stand, as every sparse update must
/// before it steps. Belongs to one kernel; buffers keep their capacity.
class RowMerger {
 public:
  /// `grad` itself when its rows are distinct already, otherwise a merged copy that lives until the next call.
  const SelectedRows& Merge(const SelectedRows& grad);

 private:
  UniqueKeys unique_;
  std::vector<uint32_t> numbers_;
  SelectedRows merged_;
};

}  // namespace millrace
