#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "ops/embedding/slot_keys.h"
#include "runtime/executable.h"
#include "runtime/scope.h"

namespace millrace {

/// Asks tables whose rows lie elsewhere for those of a batch that is trained later, while another one is: the lookups
/// of a program whose ids are slots of the batch, fused or not. Other lookups pull when they run.
///
/// One thread. Keeps its buffers. The tables in `root` outlive it.
class UpcomingRows {
 public:
  /// Of block 0 of `step`.
  static Result<std::unique_ptr<UpcomingRows>> Create(const Executable& step, const SlotSchema& schema,
                                                      const Scope& root);

  /// Whether there is nothing to ask for.
  bool empty() const { return lookups_.empty(); }
  /// Asks for the rows of `batch`, without waiting (Prefetchable::Fetch).
  Status Fetch(const SlotBatch& batch);

 private:
  /// What an operator pulls from one table.
  struct Lookup {
    Prefetchable* table = nullptr;
    std::vector<SlotId> slots;
    std::vector<IdRule> rules;  ///< one a slot, with its salt
    SlotKeys keys;
    bool is_distinct = false;   ///< pulls each key once
    bool repeats_last = false;  ///< the keys are those of the lookup before
  };

  Status Add(const OpView& op, const SlotSchema& schema, const Scope& root);
  void FindKeys(const SlotBatch& batch, Lookup& lookup);

  std::vector<Lookup> lookups_;
  UniqueKeys unique_;
  std::vector<uint64_t> keys_;
};

}  // namespace millrace
