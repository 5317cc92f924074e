#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "framework.pb.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

/// By variable, the counts that programs with counters of their own made on a scope since the variable was set.
/// Thread-safe.
class SeenCounts {
 public:
  std::optional<std::vector<int64_t>> Find(const std::string& name) const;
  void Set(const std::string& name, std::vector<int64_t> counts);
  void Erase(const std::string& name);
  /// Adds after[i] - before[i] for the counts that both have.
  void Add(const std::string& name, const std::vector<int64_t>& before, const Tensor& after);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<int64_t>> counts_;
};

/// The counts of a program that measures itself (`auc`). They are kept apart from the counts that training makes under
/// the same names in the scope. One thread.
class ProgramCounters {
 public:
  explicit ProgramCounters(const ProgramDesc& program);

  /// Swaps its own counts into the scope, whose parameters have this version. Own counts start at 0, and restart
  /// when the version changes: counts of other parameters mean nothing for these.
  void Enter(Scope& scope, uint64_t version);
  /// Swaps them back and adds the new counts to `seen`.
  void Leave(Scope& scope, SeenCounts* seen);

 private:
  struct Count {
    std::string name;
    bool adds_up = false;  ///< counts every batch
    Tensor own;
    std::vector<int64_t> entered;  ///< its own at Enter
  };
  void Exchange(Scope& scope);

  std::vector<Count> counts_;
  uint64_t version_ = 0;
};

/// Enters the counters for the duration of a run. `counts` can be null: the scope's counts continue.
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
