#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device_worker/device_worker.h"

namespace millrace {

/// Ends the job when one of some variables holds a NaN or an infinite value after a batch (check_nan_var_names). The
/// message names the variable, the first operator of the program with such an output, and the row's file and line. The
/// batch is kept as MultiSlot lines, so that it can be looked at and run again. Reads every value of the variables in
/// each batch.
class NanCheck final : public BatchObserver {
 public:
  /// kInvalidConfig for names that the frame does not have, or that hold neither tensor nor rows of gradients. A batch
  /// is kept in `folder`, as nan_batch_STEP.txt; with an empty one it is not.
  static Result<std::unique_ptr<NanCheck>> Create(const Executable& executable, const Frame& frame,
                                                  const std::vector<std::string>& names, std::string folder);
  Status OnBatch(const TrainedBatch& trained) override;

 private:
  NanCheck(const Executable& executable, std::string folder) : executable_(&executable), folder_(std::move(folder)) {}
  Status Report(const TrainedBatch& trained, size_t which, int64_t at) const;
  std::string FirstOperator(const Frame& frame) const;
  std::string Keep(const TrainedBatch& trained) const;

  const Executable* executable_;
  std::string folder_;
  std::vector<std::string> names_;
  std::vector<const Variable*> variables_;
};

}  // namespace millrace
