#pragma once

#include <cstdint>
#include <vector>

#include "batch/consumed_ranges.h"
#include "datafeed/packed_rows.h"
#include "datafeed/row_layout.h"
#include "dataset/row_channels.h"

namespace millrace {

/// Page views: rows with the same search_id (LogKey) are adjacent; views are in the order of their first rows.
struct PageViews {
  std::vector<RowHandle> order;
  std::vector<uint64_t> begins;  ///< offsets of the page views in `order`, and the end of the last one

  size_t size() const { return begins.empty() ? 0 : begins.size() - 1; }
};

/// Groups rows whose names are log keys.
PageViews GroupPageViews(const RowLayout& layout, const PackedRows& rows, const std::vector<RowHandle>& order);

/// Permutes page views by `seed`, keeping the order of rows within each.
PageViews ShufflePageViews(const PageViews& views, uint64_t seed);

/// Blocks of up to `batch_size` untrained page views, as numbers of a PassOrder over the same ranges. `drop_last` drops
/// a smaller last block.
std::vector<RowBlock> PageViewBlocks(const PageViews& views, const ConsumedRanges* trained, int batch_size,
                                     bool drop_last);

}  // namespace millrace
