#include "python/own_counts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "program/op_registry.h"

namespace millrace {
namespace {

Tensor* TensorOf(const Scope& scope, const std::string& name) {
  Variable* variable = scope.Find(name);
  return variable != nullptr && variable->Is<Tensor>() ? variable->GetMutable<Tensor>() : nullptr;
}

}  // namespace

void OwnCounts::Enter(Scope& scope, uint64_t version) {
  for (size_t i = 0; i < names_.size(); ++i) {
    const Tensor* theirs = TensorOf(scope, names_[i]);
    if (theirs == nullptr || theirs->empty() || (!tensors_[i].empty() && version == version_)) continue;
    void* values = tensors_[i].ResizeRaw(theirs->dtype(), theirs->dims());
    std::memset(values, 0, BytesOf(*theirs));
  }
  version_ = version;
  Exchange(scope);
}

void OwnCounts::Leave(Scope& scope) { Exchange(scope); }

void OwnCounts::Exchange(Scope& scope) {
  for (size_t i = 0; i < names_.size(); ++i) {
    Tensor* theirs = TensorOf(scope, names_[i]);
    if (theirs != nullptr && !tensors_[i].empty()) std::swap(*theirs, tensors_[i]);
  }
}

std::vector<std::string> CountedVariables(const ProgramDesc& program) {
  std::vector<std::string> names;
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      if (op.type() != "auc") continue;
      for (const char* output : {"StatPosOut", "StatNegOut"}) {
        for (const std::string& name : OutputArguments(op, output)) {
          if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        }
      }
    }
  }
  return names;
}

}  // namespace millrace
