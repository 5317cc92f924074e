#pragma once

#include <vector>

#include "datafeed/packed_rows.h"
#include "datafeed/row_layout.h"
#include "dataset/dataset.h"

namespace millrace {

/// How rows of one example become one row.
struct MergeOptions {
  int merge_size = 2;           ///< lines that an example must have; 0: any number
  bool zero_is_absent = false;  ///< a sparse slot with a single 0 holds nothing: zeros were dropped
};

/// Merges the rows of `order` that have the same name (ins_id), as Paddle's merge_by_lineid does.
///
/// A sparse slot is taken from the only row that has values in it; of a dense one, the last row that is not all zeros
/// counts. An example whose lines are not merge_size many, or with a slot in two of them, is left out: counted in
/// `stats` (merge_wrong_size, merge_conflict: lines; merged: examples) and the first few named in the log. What is
/// left stands in the order of first lines, with their origins. Rows go to new slabs; `rows` holds both until the end.
void MergeRowsByName(const SlotSchema& schema, const RowLayout& layout, const std::vector<std::string>& files,
                     const MergeOptions& options, PackedRows* rows, std::vector<RowHandle>* order, PassStats* stats);

}  // namespace millrace
