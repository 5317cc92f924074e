#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework.pb.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

/// What a program that measures itself has counted (`auc`): kept beside the scope in which training counts by the same
/// names. One thread.
class OwnCounts {
 public:
  explicit OwnCounts(std::vector<std::string> names) : names_(std::move(names)), tensors_(names_.size()) {}

  /// Exchanges the tensors of a scope, whose parameters have this version, for its own. Those start at 0, and again
  /// when the parameters have changed since: what another model counted says nothing of this one.
  void Enter(Scope& scope, uint64_t version);
  /// Exchanges them back.
  void Leave(Scope& scope);

 private:
  void Exchange(Scope& scope);

  std::vector<std::string> names_;
  std::vector<Tensor> tensors_;
  uint64_t version_ = 0;
};

/// For the time of a run. `counts` may be null: the scope's own go on.
class Counting {
 public:
  Counting(OwnCounts* counts, Scope& scope, uint64_t version) : counts_(counts), scope_(&scope) {
    if (counts_ != nullptr) counts_->Enter(scope, version);
  }
  ~Counting() {
    if (counts_ != nullptr) counts_->Leave(*scope_);
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  OwnCounts* counts_;
  Scope* scope_;
};

/// The variables that operators of a program count in from batch to batch.
std::vector<std::string> CountedVariables(const ProgramDesc& program);

}  // namespace millrace
