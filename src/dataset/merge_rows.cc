#include "dataset/merge_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "core/hash.h"
#include "datafeed/column_sink.h"
#include "datafeed/put_row.h"
#include "datafeed/row_decoder.h"
#include "datafeed/row_sink.h"

namespace millrace {
namespace {

constexpr int kNamed = 5;

/// Positions in an order of rows: equal names adjacent, positions ascending.
struct NameGroups {
  struct Group {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  std::vector<uint32_t> positions;
  std::vector<Group> groups;  ///< ranges of `positions`, by the first position of each
};

NameGroups GroupByName(const RowLayout& layout, const PackedRows& rows, const std::vector<RowHandle>& order) {
  NameGroups result;
  std::vector<uint32_t>& positions = result.positions;
  positions.resize(order.size());
  std::iota(positions.begin(), positions.end(), 0U);
  std::vector<uint64_t> hashes(order.size());
  const auto name = [&](uint32_t position) { return InsIdOf(layout, rows.Row(order[position])); };
  for (const uint32_t position : positions) hashes[position] = HashName(name(position));
  std::sort(positions.begin(), positions.end(), [&](uint32_t a, uint32_t b) {
    if (hashes[a] != hashes[b]) return hashes[a] < hashes[b];
    const int order_of_names = name(a).compare(name(b));
    return order_of_names != 0 ? order_of_names < 0 : a < b;
  });
  for (uint32_t i = 0; i < positions.size(); ++i) {
    const bool is_new =
        i == 0 || hashes[positions[i - 1]] != hashes[positions[i]] || name(positions[i - 1]) != name(positions[i]);
    if (is_new) result.groups.push_back({i, i});
    ++result.groups.back().end;
  }
  std::sort(result.groups.begin(), result.groups.end(),
            [&](const auto& a, const auto& b) { return positions[a.begin] < positions[b.begin]; });
  return result;
}

class RowMerger {
 public:
  RowMerger(const SlotSchema& schema, const RowLayout& layout, const MergeOptions& options, const PackedRows& from,
            PackedRows* to)
      : schema_(&schema),
        layout_(&layout),
        options_(options),
        from_(&from),
        lines_(schema),
        sink_(schema),
        merged_(layout, to) {}

  /// False if two rows have values in a slot; conflict() names it.
  bool Merge(const std::vector<RowHandle>& handles) {
    lines_.Clear();
    sink_.Attach(&lines_);
    for (const RowHandle handle : handles) DecodeRow(*layout_, from_->Row(handle), sink_);
    sink_.Detach();
    std::vector<size_t> chosen(static_cast<size_t>(schema_->used_count()));
    for (const SlotSpec& slot : schema_->used()) {
      if (!Choose(slot, &chosen[static_cast<size_t>(slot.id)])) return false;
    }
    const RowOrigin origin = from_->Origin(handles[0]);
    merged_.BeginBlock(origin.file);
    merged_.set_line(origin.line);
    merged_.BeginRow();
    if (layout_->has_ins_id) merged_.SetInsId(lines_.ins_ids()[0]);
    if (layout_->has_content) merged_.SetContent(lines_.contents()[0]);
    for (const SlotSpec& slot : schema_->used()) Copy(slot, chosen[static_cast<size_t>(slot.id)]);
    merged_.EndRow();
    return true;
  }

  RowHandle merged() const { return merged_.handles().back(); }
  const std::string& conflict() const { return conflict_; }

 private:
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  Range Values(const SlotSpec& slot, size_t row) const {
    const auto width = static_cast<size_t>(slot.width);
    if (slot.is_dense) return {row * width, (row + 1) * width};
    return {lines_.offsets(slot.id)[row], lines_.offsets(slot.id)[row + 1]};
  }
  bool IsZero(const SlotSpec& slot, size_t at) const {
    return slot.type == SlotType::kUint64 ? lines_.ids(slot.id)[at] == 0 : lines_.floats(slot.id)[at] == 0;
  }
  bool HasValues(const SlotSpec& slot, size_t row) const {
    const Range values = Values(slot, row);
    if (slot.is_dense) {
      for (size_t i = values.begin; i < values.end; ++i) {
        if (!IsZero(slot, i)) return true;
      }
      return false;
    }
    const bool is_padding = options_.zero_is_absent && values.end - values.begin == 1 && IsZero(slot, values.begin);
    return values.end > values.begin && !is_padding;
  }
  bool Choose(const SlotSpec& slot, size_t* chosen) {
    *chosen = 0;
    bool found = false;
    for (size_t row = 0; row < static_cast<size_t>(lines_.rows()); ++row) {
      if (!HasValues(slot, row)) continue;
      if (found && !slot.is_dense) {
        conflict_ = slot.name;
        return false;
      }
      *chosen = row;
      found = true;
    }
    return true;
  }
  void Copy(const SlotSpec& slot, size_t row) {
    const Range values = Values(slot, row);
    const size_t count = values.end - values.begin;
    if (slot.type == SlotType::kUint64) {
      PutValues(slot.id, lines_.ids(slot.id).subspan(values.begin, count), merged_);
    } else {
      PutValues(slot.id, lines_.floats(slot.id).subspan(values.begin, count), merged_);
    }
  }

  const SlotSchema* schema_;
  const RowLayout* layout_;
  const MergeOptions options_;
  const PackedRows* from_;
  SlotBatch lines_;
  ColumnSink sink_;
  RowSink merged_;
  std::string conflict_;
};

}  // namespace

void MergeRowsByName(const SlotSchema& schema, const RowLayout& layout, const std::vector<std::string>& files,
                     const MergeOptions& options, PackedRows* rows, std::vector<RowHandle>* order, PassStats* stats) {
  PackedRows merged_rows;
  std::vector<RowHandle> merged_order;
  RowMerger merger(schema, layout, options, *rows, &merged_rows);
  int64_t left_out = 0;
  std::vector<RowHandle> handles;
  const NameGroups names = GroupByName(layout, *rows, *order);
  for (const NameGroups::Group& group : names.groups) {
    handles.clear();
    for (uint32_t i = group.begin; i < group.end; ++i) handles.push_back((*order)[names.positions[i]]);
    const auto lines = static_cast<int64_t>(handles.size());
    const bool fits = options.merge_size == 0 || lines == options.merge_size;
    if (fits && merger.Merge(handles)) {
      merged_order.push_back(merger.merged());
      continue;
    }
    stats->counters[fits ? "merge_conflict" : "merge_wrong_size"] += lines;
    if (++left_out > kNamed) continue;
    const RowOrigin origin = rows->Origin(handles[0]);
    LOG(WARNING) << "merge_by_lineid leaves out example \"" << InsIdOf(layout, rows->Row(handles[0])) << "\" ("
                 << files[origin.file] << ":" << origin.line << "): "
                 << (fits ? "slot \"" + merger.conflict() + "\" has values in two of its lines"
                          : "it has " + std::to_string(lines) + " lines, not " + std::to_string(options.merge_size));
  }
  if (left_out > kNamed) LOG(WARNING) << "merge_by_lineid leaves out " << left_out - kNamed << " more examples";
  stats->counters["merged"] += static_cast<int64_t>(merged_order.size());
  rows->Swap(merged_rows);
  *order = std::move(merged_order);
}

}  // namespace millrace
