#include "datafeed/recordio_feed.h"

#include <string>
#include <utility>

namespace millrace {

LineResult RecordIOFeed::Read(std::string_view line) {
  const size_t slots = schema().all().size();
  if (const Status read = ReadTensors(line, "its tensors", &tensors_); !read.ok()) {
    Fail(LineErrorKind::kDamaged, "", read.message());
    return LineResult::kBad;
  }
  if (tensors_.size() != slots) {
    const bool is_short = tensors_.size() < slots;
    const std::string found = is_short ? std::to_string(tensors_.size()) : "more";
    tensors_.resize(slots);
    Fail(is_short ? LineErrorKind::kMissingValues : LineErrorKind::kTrailing, "",
         "expected " + std::to_string(slots) + " tensors, one for each slot, found " + found);
    return LineResult::kBad;
  }
  for (size_t i = 0; i < slots; ++i) {
    const SlotSpec& slot = schema().all()[i];
    if (slot.is_used && !ReadSlot(slot, tensors_[i])) return LineResult::kBad;
  }
  return LineResult::kRow;
}

bool RecordIOFeed::ReadSlot(const SlotSpec& slot, const LoDTensor& tensor) {
  const auto count = static_cast<size_t>(tensor.values.numel());
  if (tensor.lod.size() > 2) {
    return Fail(LineErrorKind::kWrongWidth, slot.name,
                "expected the values of one example, found " + std::to_string(tensor.lod.size() - 1) +
                    " lists: a record is a row, not a batch");
  }
  const Dims& dims = tensor.values.dims();
  int long_axes = 0;
  for (int axis = 0; axis < dims.rank(); ++axis) long_axes += dims[axis] > 1 ? 1 : 0;
  if (!slot.is_dense && long_axes > 1) {
    return Fail(LineErrorKind::kWrongWidth, slot.name,
                "expected a list of single values, found a tensor of " + dims.ToString() +
                    "; vectors are for a dense slot, whose shape says how many there are");
  }
  if (slot.type == SlotType::kFloat && tensor.values.dtype() == DType::kFloat32) {
    return Put(slot, std::span(tensor.values.data<float>(), count));
  }
  if (slot.type == SlotType::kUint64 && tensor.values.dtype() == DType::kInt64) {
    return Put(slot, {reinterpret_cast<const uint64_t*>(tensor.values.data<int64_t>()), count});
  }
  return Fail(LineErrorKind::kBadValue, slot.name,
              "the tensor holds " + std::string(DTypeName(tensor.values.dtype())) + "; a slot of type \"" +
                  (slot.type == SlotType::kFloat ? "float\" takes float32" : "uint64\" takes int64"));
}

}  // namespace millrace
