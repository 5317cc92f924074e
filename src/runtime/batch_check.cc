#include "runtime/batch_check.h"

#include <map>
#include <set>
#include <string>

#include "core/edit_distance.h"
#include "runtime/slot_cast.h"

namespace millrace {
namespace {

using Slots = std::map<std::string, const SlotSpec*, std::less<>>;

/// The variable for a slot in a frame: a sparse one is a column of values.
VarMeta MetaOf(const SlotSpec& slot) {
  VarMeta meta;
  meta.dtype = slot.type == SlotType::kFloat ? DType::kFloat32 : DType::kInt64;
  meta.dims = slot.is_dense ? Dims(std::span<const int64_t>(slot.shape)) : Dims{-1, 1};
  return meta;
}

bool Fits(const VarMeta& declared, const SlotSpec& spec, const VarMeta& slot) {
  if (!CanFeed(spec.type, declared.dtype)) return false;
  if (declared.dims.rank() != slot.dims.rank()) return declared.dims.rank() == 0;
  for (int axis = 1; axis < slot.dims.rank(); ++axis) {
    if (declared.dims[axis] >= 0 && declared.dims[axis] != slot.dims[axis]) return false;
  }
  return true;
}

std::string Shown(const VarMeta& meta) { return std::string(DTypeName(meta.dtype)) + " " + meta.dims.ToString(); }

class BatchCheck {
 public:
  BatchCheck(const Executable& executable, const SlotSchema* schema) : executable_(executable) {
    if (schema == nullptr) return;
    for (const SlotSpec& slot : schema->used()) slots_[slot.name] = &slot;
  }

  Status Run() {
    CheckBlock(0);
    return problems_.empty() ? Status::Ok() : InvalidConfig(problems_);
  }

 private:
  void CheckBlock(int block) {
    for (size_t i = 0; i < executable_.ops(block).size(); ++i) {
      const OpDesc& op = executable_.ops(block)[i];
      // Frames feed slots themselves; the operator does nothing.
      if (op.type() == "feed") continue;
      // Inputs of an operator that runs a block are read by that block's operators.
      if (BlockOf(op) >= 0) {
        CheckBlock(BlockOf(op));
      } else {
        CheckInputs("block " + std::to_string(block) + " op[" + std::to_string(i) + "] ", op);
      }
      for (const OpDesc::Var& output : op.outputs()) {
        known_.insert(output.arguments().begin(), output.arguments().end());
      }
    }
  }

  void CheckInputs(const std::string& place, const OpDesc& op) {
    for (const OpDesc::Var& input : op.inputs()) {
      for (const std::string& name : input.arguments()) {
        CheckInput(place + op.type() + ": input " + input.parameter(), name);
      }
    }
  }

  void CheckInput(const std::string& where, const std::string& name) {
    const auto meta = executable_.vars().find(name);
    if (meta == executable_.vars().end() || meta->second.persistable || !IsRead(meta->second.kind)) return;
    if (!known_.insert(name).second) return;
    const auto slot = slots_.find(name);
    if (slot == slots_.end()) {
      std::vector<std::string_view> names;
      for (const auto& [known, spec] : slots_) names.push_back(known);
      Add(where + ": no operator before it writes variable \"" + name + "\", and no slot in use has that name" +
          DidYouMean(name, names));
    } else if (const VarMeta fed = MetaOf(*slot->second); !Fits(meta->second, *slot->second, fed)) {
      Add(where + ": variable \"" + name + "\" is " + Shown(meta->second) + " in the program, but slot \"" + name +
          "\" of data_desc feeds " + Shown(fed));
    }
  }
  void Add(const std::string& problem) { problems_ += (problems_.empty() ? "" : "\n") + problem; }

  const Executable& executable_;
  Slots slots_;
  std::set<std::string, std::less<>> known_;
  std::string problems_;
};

}  // namespace

bool IsRead(VarType::Type kind) {
  return kind != VarType::READER && kind != VarType::FEED_MINIBATCH && kind != VarType::FETCH_LIST;
}

bool HasRowOfEach(const Tensor& tensor, int rows) {
  const Dims& dims = tensor.dims();
  if (rows <= 0 || tensor.empty() || tensor.numel() <= 0) return false;
  return tensor.numel() == rows || (dims.rank() > 0 && dims[0] == rows);
}

Status CheckBatchVariables(const Executable& executable, const SlotSchema* schema) {
  return BatchCheck(executable, schema).Run();
}

}  // namespace millrace
