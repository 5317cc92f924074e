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

/// NaN or infinite losses that were ignored (allow_non_finite), over all workers: the first is logged immediately, all
/// are counted. Thread-safe.
class NonFiniteLosses {
 public:
  /// Counts a batch; `describe()` describes it and is called only for the first.
  template <class Describe>
  void Add(const Describe& describe) {
    if (count_.fetch_add(1, std::memory_order_relaxed) == 0) Show(describe());
  }
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  /// Description of the first; empty if there is none.
  std::string first() const;

 private:
  void Show(std::string text);

  std::atomic<int64_t> count_{0};
  mutable std::mutex mutex_;
  std::string first_;
};

/// Settings of a NanCheck.
struct NanCheckRule {
  std::vector<std::string> names;     ///< check_nan_var_names
  std::string loss;                   ///< loss of the program; empty: none, or not checked
  NonFiniteLosses* passed = nullptr;  ///< receives losses that do not end the job; null: they end it. Must outlive the
                                      ///< check.
  std::string folder;                 ///< where the batch is saved as nan_batch_STEP.txt; empty: not saved
  bool is_of_features = false;        ///< the job reads columns, so the saved lines are not its input
};

/// Ends the job if the loss, or a variable of check_nan_var_names, contains NaN or infinity after a batch. The message
/// contains the variable, the batch's files and lines, an input that already had such a value, and the first operator
/// that produced one. The batch is saved as MultiSlot lines for inspection and replay. Reads every value of the
/// variables in each batch, and does not allocate while they are finite. OnBatch fails with kBadData for such a value.
class NanCheck final : public BatchObserver {
 public:
  /// Fails with kInvalidConfig for names that the frame lacks, or that are neither tensors nor gradient rows.
  static Result<std::unique_ptr<NanCheck>> Create(const Executable& executable, const Frame& frame, NanCheckRule rule);
  Status OnBatch(const TrainedBatch& trained) override;
  /// Whether the batch for which OnBatch failed had such a value in its input. Call it after the worker's thread has
  /// ended.
  bool found_in_input() const { return found_in_input_; }

 private:
  NanCheck(const Executable& executable, NanCheckRule rule) : executable_(&executable), rule_(std::move(rule)) {}
  std::string Describe(const TrainedBatch& trained, const std::string& name, const Variable& variable, int64_t at);
  std::string FirstOperator(const Frame& frame);
  std::string Keep(const TrainedBatch& trained) const;

  const Executable* executable_;
  NanCheckRule rule_;
  const Variable* loss_ = nullptr;       ///< null: not checked
  const Tensor* loss_tensor_ = nullptr;  ///< the tensor of loss_
  bool found_in_input_ = false;
  HostView host_view_;
  std::vector<const Variable*> variables_;  ///< variables of rule_.names
};

}  // namespace millrace
