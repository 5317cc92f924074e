#include "datafeed/libsvm_feed.h"

#include <cstdint>
#include <string>

#include "core/numbers.h"
#include "reader/libsvm_line.h"

namespace millrace {

Status LibsvmFeed::CheckSlots(const SlotSchema& schema) {
  const std::vector<SlotSpec>& slots = schema.all();
  const auto is = [&slots](size_t i, SlotType type, bool is_dense) {
    return slots[i].type == type && slots[i].is_dense == is_dense;
  };
  const bool has_label = !slots[0].is_dense || slots[0].width == 1;
  const bool is_dense = slots.size() == 2 && is(1, SlotType::kFloat, true);
  const bool is_sparse = slots.size() == 3 && is(1, SlotType::kUint64, false) && is(2, SlotType::kFloat, false);
  if (has_label && (is_dense || is_sparse)) return Status::Ok();
  return InvalidConfig(
      "data_desc.multi_slot_desc: the slots of libsvm lines, used or not, are a label of one value and either dense "
      "floats, or sparse ids (the indices) and sparse floats (their values)");
}

LineResult LibsvmFeed::Read(std::string_view line) {
  set_line(line);
  LibsvmLine parts(line);
  const std::string_view label = parts.Next();
  if (label.empty()) {
    ++counted().blank_lines;
    return LineResult::kBlank;
  }
  const std::vector<SlotSpec>& slots = schema().all();
  ids().clear();
  floats().clear();
  if (!ReadLabel(slots[0], label)) return LineResult::kBad;

  ids().clear();
  floats().clear();
  const SlotSpec& values = slots.back();
  const bool is_dense = values.is_dense;
  if (is_dense) floats().resize(static_cast<size_t>(values.width));
  const int64_t most = is_dense ? values.width : INT64_MAX;
  int64_t last = 0;
  const auto put = [&](int64_t index, float value) {
    if (is_dense) {
      floats()[static_cast<size_t>(index) - 1] = value;
    } else {
      ids().push_back(static_cast<uint64_t>(index));
      floats().push_back(value);
    }
  };
  for (;;) {
    parts.TakePlainPairs(most, &last, guess(), put);
    const std::string_view token = parts.Next();
    if (token.empty()) break;
    if (!ReadPair(values, token, most, &last)) return LineResult::kBad;
    const float value = floats().back();
    floats().pop_back();
    put(last, value);
  }
  const bool is_put =
      (is_dense || !slots[1].is_used || Put(slots[1], ids())) && (!values.is_used || Put(values, floats()));
  return is_put ? LineResult::kRow : LineResult::kBad;
}

bool LibsvmFeed::ReadLabel(const SlotSpec& slot, std::string_view token) {
  if (slot.type == SlotType::kFloat) {
    return ReadFloat(slot, token) && (!slot.is_used || Put(slot, floats()));
  }
  return ReadId(slot, token) && (!slot.is_used || Put(slot, ids()));
}

bool LibsvmFeed::ReadPair(const SlotSpec& values, std::string_view token, int64_t most, int64_t* last) {
  const size_t colon = token.find(':');
  uint64_t index = 0;
  if (colon == std::string_view::npos || ParseInteger(token.substr(0, colon), &index) != IntegerText::kOk) {
    return BadToken(LineErrorKind::kBadValue, values,
                    token.starts_with("qid:") ? "INDEX:VALUE (of features \"qid\" is a column)" : "INDEX:VALUE", token);
  }
  if (index <= static_cast<uint64_t>(*last)) {
    const std::string advice =
        index == 0 && *last == 0 ? " (of features they may begin at 0: libsvm { zero_based: true })" : "";
    return BadToken(LineErrorKind::kBadValue, values, "an index above " + std::to_string(*last) + advice, token);
  }
  if (index > static_cast<uint64_t>(most)) {
    return BadToken(LineErrorKind::kOverflow, values, "an index up to " + std::to_string(most), token);
  }
  *last = static_cast<int64_t>(index);
  return ReadFloat(values, token.substr(colon + 1));
}

}  // namespace millrace
