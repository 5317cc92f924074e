#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device_worker/device_worker.h"

namespace millrace {

/// Ends the job when one of some variables holds a NaN or an infinite value after a batch (check_nan_var_names). The
/// message names the variable, the first operator of the program with such an output, and the row's file and line.
/// Reads every value of the variables in each batch.
class NanCheck final : public BatchObserver {
 public:
  /// kInvalidConfig for names that the frame does not have, or that hold neither tensor nor rows of gradients.
  static Result<std::unique_ptr<NanCheck>> Create(const Executable& executable, const Frame& frame,
                                                  const std::vector<std::string>& names);
  Status OnBatch(const TrainedBatch& trained) override;

 private:
  explicit NanCheck(const Executable& executable) : executable_(&executable) {}
  Status Report(const TrainedBatch& trained, size_t which, int64_t at) const;
  std::string FirstOperator(const Frame& frame) const;

  const Executable* executable_;
  std::vector<std::string> names_;
  std::vector<const Variable*> variables_;
};

}  // namespace millrace
