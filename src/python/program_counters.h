#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework.pb.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

/// What programs that measure themselves have counted of all batches on a scope since its counts were set, by name.
using SeenCounts = std::map<std::string, std::vector<int64_t>>;

/// What a program that measures itself has counted (`auc`): kept beside the scope in which training counts by the same
/// names, so that neither shows what the other saw. One thread.
class ProgramCounters {
 public:
  explicit ProgramCounters(const ProgramDesc& program);

  /// Exchanges the tensors of a scope, whose parameters have this version, for its own. Those start at 0, and again
  /// when the parameters have changed since: what another model counted says nothing of this one.
  void Enter(Scope& scope, uint64_t version);
  /// Exchanges them back, and adds to `seen` what was counted meanwhile.
  void Leave(Scope& scope, SeenCounts* seen);

 private:
  struct Count {
    std::string name;
    bool adds_up = false;  ///< no batch is forgotten
    Tensor own;
    std::vector<int64_t> entered;  ///< its own at Enter
  };
  void Exchange(Scope& scope);

  std::vector<Count> counts_;
  uint64_t version_ = 0;
};

/// For the time of a run. `counts` may be null: the scope's own go on.
class ScopedCounters {
 public:
  ScopedCounters(ProgramCounters* counts, Scope& scope, uint64_t version, SeenCounts* seen)
      : counts_(counts), scope_(&scope), seen_(seen) {
    if (counts_ != nullptr) counts_->Enter(scope, version);
  }
  ~ScopedCounters() {
    if (counts_ != nullptr) counts_->Leave(*scope_, seen_);
  }
  ScopedCounters(const ScopedCounters&) = delete;
  ScopedCounters& operator=(const ScopedCounters&) = delete;

 private:
  ProgramCounters* counts_;
  Scope* scope_;
  SeenCounts* seen_;
};

}  // namespace millrace
