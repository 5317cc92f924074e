#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device_worker/device_worker.h"
#include "runtime/transfer.h"

namespace millrace {

/// Losses that were NaN or infinite and were let pass (allow_non_finite), of all workers: the first is shown at once,
/// all are counted. Thread-safe.
class NonFiniteLosses {
 public:
  /// Takes a batch into account; `describe()` says which, and is called for the first alone.
  template <class Describe>
  void Add(const Describe& describe) {
    if (count_.fetch_add(1, std::memory_order_relaxed) == 0) Show(describe());
  }
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  /// Of the first; empty when there is none.
  std::string first() const;

 private:
  void Show(std::string text);

  std::atomic<int64_t> count_{0};
  mutable std::mutex mutex_;
  std::string first_;
};

/// What a NanCheck looks at.
struct NanCheckRule {
  std::vector<std::string> names;     ///< check_nan_var_names
  std::string loss;                   ///< of the program; empty: it has none, or it is not looked at
  NonFiniteLosses* passed = nullptr;  ///< takes losses that do not end the job; null: they do. Outlives the check.
  std::string folder;                 ///< for the batch, as nan_batch_STEP.txt; empty: it is not kept
  bool is_of_features = false;        ///< the job reads columns, and not what is kept
};

/// Ends the job when the loss, or one of some variables (check_nan_var_names), holds a NaN or an infinite value after a
/// batch. The message has the variable, the batch's files and lines, the input that held such a value itself, and the
/// first operator of the program that gave one. The batch is kept as MultiSlot lines, so that it can be looked at and
/// run again. Reads every value of the variables in each batch, and allocates nothing while they are finite.
class NanCheck final : public BatchObserver {
 public:
  /// kInvalidConfig for names that the frame does not have, or that hold neither tensor nor rows of gradients.
  static Result<std::unique_ptr<NanCheck>> Create(const Executable& executable, const Frame& frame, NanCheckRule rule);
  Status OnBatch(const TrainedBatch& trained) override;
  /// Whether the batch that OnBatch failed for held such a value in its input. For when its thread has ended.
  bool found_in_input() const { return found_in_input_; }

 private:
  NanCheck(const Executable& executable, NanCheckRule rule) : executable_(&executable), rule_(std::move(rule)) {}
  std::string Describe(const TrainedBatch& trained, const std::string& name, const Variable& variable, int64_t at);
  std::string FirstOperator(const Frame& frame);
  std::string Keep(const TrainedBatch& trained) const;

  const Executable* executable_;
  NanCheckRule rule_;
  const Variable* loss_ = nullptr;       ///< null: not looked at
  const Tensor* loss_tensor_ = nullptr;  ///< what loss_ holds
  bool found_in_input_ = false;
  HostView host_view_;
  std::vector<const Variable*> variables_;  ///< of rule_.names
};

}  // namespace millrace
