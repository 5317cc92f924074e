#pragma once

#include <span>
#include <vector>

#include "core/wire.h"
#include "table/sparse_table.h"

namespace millrace {

/// Columns in front of a row, and of what is pushed to it, that are counts and no weights or gradients.
inline size_t CountColumns(const TableShape& shape) { return shape.counts ? 2 : 0; }

/// Writes how many floats there are, then rows of a table, or gradients of some, shape.dim floats each. Counts of shows
/// and clicks are never rounded.
void PutRows(std::span<const float> rows, const TableShape& shape, WireFloat as, WireWriter* out);

/// A row behind the number of floats, into shape.dim floats.
inline void GetRow(WireReader* in, const TableShape& shape, WireFloat as, float* row) {
  const size_t whole = CountColumns(shape);
  in->GetFloats(WireFloat::kFloat32, row, whole);
  in->GetFloats(as, row + whole, static_cast<size_t>(shape.dim) - whole);
}

/// What PutRows wrote; where it is no number of rows, in->ok() is false.
void GetRows(WireReader* in, const TableShape& shape, WireFloat as, std::vector<float>* rows);

}  // namespace millrace
