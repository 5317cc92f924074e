#include "batch/slot_schema.h"

#include <unordered_set>

#include "core/dims.h"
#include "core/numbers.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

// Splits "C12" into "C" and 12; false unless the name ends in digits.
bool SplitNumber(std::string_view name, std::string_view* stem, int64_t* number) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == name.size()) return false;
  *stem = name.substr(0, digits);
  return ReadWhole(name.substr(digits), number);
}

Status CheckDenseShape(const Slot& slot) {
  int unknown = 0;
  for (const int dim : slot.shape()) {
    if (dim == -1) ++unknown;
    if (dim == 0 || dim < -1) {
      return InvalidConfig("slot \"" + slot.name() + "\": shape has a size of " + std::to_string(dim) +
                           "; sizes are positive, and -1 stands for the batch");
    }
  }
  if (slot.shape_size() == 0) {
    return InvalidConfig("slot \"" + slot.name() + "\": a dense slot needs a shape, for example shape: [-1, 1]");
  }
  if (slot.shape_size() >= Dims::kMaxRank) {
    return InvalidConfig("slot \"" + slot.name() + "\": shape has " + std::to_string(slot.shape_size()) +
                         " sizes; at most " + std::to_string(Dims::kMaxRank - 1) + " are supported");
  }
  if (unknown == 1 && slot.shape(0) != -1) {
    // Examples are contiguous, so the batch is the first axis.
    return InvalidConfig("slot \"" + slot.name() + "\": the -1 of the batch stands first in a shape");
  }
  if (unknown != 1) {
    return InvalidConfig("slot \"" + slot.name() + "\": the shape of a dense slot has exactly one -1, for the batch; " +
                         "it has " + std::to_string(unknown));
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<std::string>> ExpandSlotRange(std::string_view name) {
  const size_t dots = name.find("..");
  if (dots == std::string_view::npos) return std::vector<std::string>{std::string(name)};
  std::string_view first_stem;
  std::string_view last_stem;
  int64_t first = 0;
  int64_t last = 0;
  if (!SplitNumber(name.substr(0, dots), &first_stem, &first) ||
      !SplitNumber(name.substr(dots + 2), &last_stem, &last) || first_stem != last_stem) {
    return InvalidConfig("slot range \"" + std::string(name) + "\": both ends need the same name and a number, as in " +
                         "\"C1..C26\"");
  }
  if (first > last || last - first >= 65536) {
    return InvalidConfig("slot range \"" + std::string(name) + "\": runs from " + std::to_string(first) + " to " +
                         std::to_string(last) + "; it must rise and hold at most 65536 slots");
  }
  std::vector<std::string> names;
  for (int64_t i = first; i <= last; ++i) names.push_back(std::string(first_stem) + std::to_string(i));
  return names;
}

Result<SlotSchema> SlotSchema::Create(const DataFeedDesc& desc) {
  SlotSchema schema;
  schema.is_of_features_ = desc.feature_size() > 0;
  std::string problems;
  std::unordered_set<std::string> seen;
  const auto report = [&problems](const std::string& message) {
    if (!problems.empty()) problems += '\n';
    problems += message;
  };
  for (const Slot& slot : desc.multi_slot_desc().slots()) {
    if (slot.name().empty()) {
      report("a slot without a name");
      continue;
    }
    // Paddle writes "uint32" for 32-bit variables and reads the slot like "uint64".
    if (slot.type() != "uint64" && slot.type() != "uint32" && slot.type() != "float") {
      report("slot \"" + slot.name() + "\": type is \"uint64\" or \"float\", not \"" + slot.type() + "\"");
    }
    if (slot.is_dense()) {
      if (Status s = CheckDenseShape(slot); !s.ok()) report(s.message());
    }
    Result<std::vector<std::string>> names = ExpandSlotRange(slot.name());
    if (!names.ok()) {
      report(names.status().message());
      continue;
    }
    for (const std::string& name : *names) {
      if (!seen.insert(name).second) report("slot \"" + name + "\" stands twice in multi_slot_desc");
      SlotSpec spec;
      spec.name = name;
      spec.type = slot.type() == "float" ? SlotType::kFloat : SlotType::kUint64;
      spec.is_dense = slot.is_dense();
      spec.is_used = slot.is_used();
      if (spec.is_dense) {
        spec.width = 1;
        for (const int dim : slot.shape()) {
          spec.shape.push_back(dim);
          if (dim > 0) spec.width *= dim;
        }
      }
      if (spec.is_used) {
        spec.id = schema.used_count();
        schema.used_.push_back(spec);
      }
      schema.slots_.push_back(std::move(spec));
    }
  }
  if (schema.slots_.empty() && problems.empty()) report("data_desc.multi_slot_desc names no slots");
  if (!schema.slots_.empty() && schema.used_.empty()) report("no slot has is_used: true, so there is nothing to feed");
  if (!problems.empty()) return InvalidConfig(problems);
  return schema;
}

SlotId SlotSchema::Find(std::string_view name) const {
  for (const SlotSpec& spec : used_) {
    if (spec.name == name) return spec.id;
  }
  return -1;
}

}  // namespace millrace
