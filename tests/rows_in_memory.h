#pragma once

#include <vector>

#include "table/row_batch.h"

namespace millrace {

/// The rows that a hash table gave out, where it has them: weights, then the optimizer's state, to look at and to write
/// to.
inline std::vector<float*> RowsInMemory(const RowBatch& rows) {
  std::vector<float*> places;
  for (const float* row : rows.weights()) places.push_back(const_cast<float*>(row));
  return places;
}

}  // namespace millrace
