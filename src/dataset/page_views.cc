#include "dataset/page_views.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/shuffle.h"
#include "datafeed/log_key.h"
#include "datafeed/row_decoder.h"

namespace millrace {

PageViews GroupPageViews(const RowLayout& layout, const PackedRows& rows, const std::vector<RowHandle>& order) {
  std::unordered_map<uint64_t, uint32_t> numbers;
  std::vector<uint32_t> view_of(order.size());
  PageViews views;
  for (size_t i = 0; i < order.size(); ++i) {
    const uint64_t search_id = ParseLogKey(InsIdOf(layout, rows.Row(order[i]))).value().search_id;
    const auto [view, is_new] = numbers.try_emplace(search_id, static_cast<uint32_t>(numbers.size()));
    view_of[i] = view->second;
    if (is_new) views.begins.push_back(0);
    ++views.begins[view->second];
  }
  views.begins.push_back(0);
  std::exclusive_scan(views.begins.begin(), views.begins.end(), views.begins.begin(), uint64_t{0});
  std::vector<uint64_t> next = views.begins;
  views.order.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) views.order[next[view_of[i]]++] = order[i];
  return views;
}

PageViews ShufflePageViews(const PageViews& views, uint64_t seed) {
  std::vector<uint32_t> numbers(views.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  Shuffle(numbers, seed);
  PageViews shuffled;
  shuffled.order.reserve(views.order.size());
  for (const uint32_t number : numbers) {
    shuffled.begins.push_back(shuffled.order.size());
    shuffled.order.insert(shuffled.order.end(), views.order.begin() + static_cast<ptrdiff_t>(views.begins[number]),
                          views.order.begin() + static_cast<ptrdiff_t>(views.begins[number + 1]));
  }
  shuffled.begins.push_back(shuffled.order.size());
  return shuffled;
}

std::vector<RowBlock> PageViewBlocks(const PageViews& views, const ConsumedRanges* trained, int batch_size,
                                     bool drop_last) {
  std::vector<RowBlock> blocks;
  uint64_t number = 0;
  int in_block = 0;
  for (size_t view = 0; view < views.size(); ++view) {
    // Batches contain whole page views, so checking the first row is sufficient.
    if (trained != nullptr && trained->Contains(0, views.begins[view])) continue;
    if (in_block == 0) blocks.push_back({number, number});
    number += views.begins[view + 1] - views.begins[view];
    blocks.back().end = number;
    if (++in_block == batch_size) in_block = 0;
  }
  if (drop_last && in_block > 0) blocks.pop_back();
  return blocks;
}

}  // namespace millrace
