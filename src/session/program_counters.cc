#include "session/program_counters.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "program/counters.h"
#include "program/op_registry.h"

namespace millrace {
namespace {

Tensor* TensorOf(const Scope& scope, const std::string& name) {
  Variable* variable = scope.Find(name);
  return variable != nullptr && variable->Is<Tensor>() ? variable->GetMutable<Tensor>() : nullptr;
}

}  // namespace

std::optional<std::vector<int64_t>> SeenCounts::Find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(name);
  return found == counts_.end() ? std::nullopt : std::optional(found->second);
}

void SeenCounts::Set(const std::string& name, std::vector<int64_t> counts) {
  const std::lock_guard lock(mutex_);
  counts_[name] = std::move(counts);
}

void SeenCounts::Erase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  counts_.erase(name);
}

void SeenCounts::Add(const std::string& name, const std::vector<int64_t>& before, const Tensor& after) {
  const std::lock_guard lock(mutex_);
  std::vector<int64_t>& total = counts_[name];
  total.resize(std::max(total.size(), before.size()));
  // Paddle's counts lose the element after the buckets in the first run.
  const size_t size = std::min(static_cast<size_t>(after.numel()), before.size());
  for (size_t i = 0; i < size; ++i) total[i] += after.data<int64_t>()[i] - before[i];
}

ProgramCounters::ProgramCounters(const ProgramDesc& program) {
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      if (op.type() != "auc") continue;
      for (const char* output : {"StatPosOut", "StatNegOut"}) {
        for (std::string& name : OutputArguments(op, output)) {
          const auto is_known = [&](const Count& count) { return count.name == name; };
          if (std::any_of(counts_.begin(), counts_.end(), is_known)) continue;
          counts_.push_back({std::move(name), CountsAllBatches(op), {}, {}});
        }
      }
    }
  }
}

void ProgramCounters::Enter(Scope& scope, uint64_t version) {
  for (Count& count : counts_) {
    const Tensor* theirs = TensorOf(scope, count.name);
    if (theirs != nullptr && !theirs->empty() && (count.own.empty() || version != version_)) {
      void* values = count.own.ResizeRaw(theirs->dtype(), theirs->dims());
      std::memset(values, 0, BytesOf(*theirs));
    }
    if (!count.adds_up) continue;
    count.entered.clear();
    if (count.own.empty() || count.own.dtype() != DType::kInt64) continue;
    count.entered.assign(count.own.data<int64_t>(), count.own.data<int64_t>() + count.own.numel());
  }
  version_ = version;
  Exchange(scope);
}

void ProgramCounters::Leave(Scope& scope, SeenCounts* seen) {
  Exchange(scope);
  for (const Count& count : counts_) {
    if (!count.entered.empty()) seen->Add(count.name, count.entered, count.own);
  }
}

void ProgramCounters::Exchange(Scope& scope) {
  for (Count& count : counts_) {
    Tensor* theirs = TensorOf(scope, count.name);
    if (theirs != nullptr && !count.own.empty()) std::swap(*theirs, count.own);
  }
}

}  // namespace millrace
