#include "ops/embedding/slots_layout.h"

#include <algorithm>

namespace millrace {

Result<racy::Pooling> ParsePooling(const std::string& pooltype) {
  std::string upper = pooltype;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  if (upper == "SUM") return racy::Pooling::kSum;
  if (upper == "AVERAGE") return racy::Pooling::kAverage;
  if (upper == "SQRT") return racy::Pooling::kSqrt;
  return InvalidConfig("pooltype is one of SUM, AVERAGE, SQRT: \"" + pooltype + "\"");
}

Result<SlotsLayout> SlotsLayout::Create(const OpView& op) {
  SlotsLayout layout;
  MR_ASSIGN(layout.pooling, ParsePooling(op.String("pooltype")));
  const std::vector<std::string> ids = InputArguments(op.desc(), "Ids");
  const std::vector<std::string> parameters = InputArguments(op.desc(), "W");
  if (ids.empty() || ids.size() != parameters.size()) {
    return InvalidConfig(op.type() + ": Ids and W must be as many, one a slot: " + std::to_string(ids.size()) +
                         " and " + std::to_string(parameters.size()));
  }
  layout.slots = ids.size();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto same = [&](const Parameter& p) { return parameters[p.first_slot] == parameters[i]; };
    auto at = std::find_if(layout.parameters.begin(), layout.parameters.end(), same);
    if (at == layout.parameters.end()) at = layout.parameters.insert(at, Parameter{i, {}});
    at->slots.push_back(i);
  }
  layout.dense_at = op.Ints("dense_at");
  const bool sorted = std::is_sorted(layout.dense_at.begin(), layout.dense_at.end());
  const bool within = layout.dense_at.empty() ||
                      (layout.dense_at.front() >= 0 && layout.dense_at.back() <= static_cast<int64_t>(layout.slots));
  if (!sorted || !within) return InvalidConfig(op.type() + ": dense_at must ascend from 0 to the number of slots");
  return layout;
}

std::span<const uint32_t> SlotOffsets::Of(const Tensor& ids) {
  if (ids.has_lod()) return ids.lod();
  const size_t count = static_cast<size_t>(ids.numel()) + 1;
  while (counting_.size() < count) counting_.push_back(static_cast<uint32_t>(counting_.size()));
  return {counting_.data(), count};
}

size_t SlotsLayout::Columns(const std::vector<size_t>& slot_widths, const std::vector<size_t>& dense_widths,
                            std::vector<size_t>* slot_columns, std::vector<size_t>* dense_columns) const {
  size_t column = 0;
  size_t dense = 0;
  for (size_t i = 0; i <= slots; ++i) {
    for (; dense < dense_at.size() && static_cast<size_t>(dense_at[dense]) == i; ++dense) {
      (*dense_columns)[dense] = column;
      column += dense_widths[dense];
    }
    if (i == slots) break;
    (*slot_columns)[i] = column;
    column += slot_widths[i];
  }
  return column;
}

}  // namespace millrace
