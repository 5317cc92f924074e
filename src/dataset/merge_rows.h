#pragma once

#include <vector>

#include "datafeed/packed_rows.h"
#include "datafeed/row_layout.h"
#include "dataset/dataset.h"

namespace millrace {

/// How the rows of one example are merged.
struct MergeOptions {
  int merge_size = 2;           ///< lines required per example; 0: any number
  bool zero_is_absent = false;  ///< a sparse slot with a single 0 is empty: zeros were dropped
};

/// Merges rows of `order` with the same name (ins_id), like Paddle's merge_by_lineid.
///
/// A sparse slot comes from the only row that has values in it; a dense slot comes from the last row that is not all
/// zeros. An example is dropped if it does not have merge_size lines or if two lines have values in one sparse slot.
/// `stats` counts dropped lines (merge_wrong_size, merge_conflict) and merged examples (merged), and the first few are
/// logged. Results are in the order of first lines, with their origins. Rows are written to new slabs; `rows` holds
/// both copies until the end.
void MergeRowsByName(const SlotSchema& schema, const RowLayout& layout, const std::vector<std::string>& files,
                     const MergeOptions& options, PackedRows* rows, std::vector<RowHandle>* order, PassStats* stats);

}  // namespace millrace
