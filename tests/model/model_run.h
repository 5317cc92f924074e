#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "job_files.h"
#include "runtime/frame.h"
#include "runtime/scope.h"

namespace millrace {

/// A compiled model with its parameters and one frame: what a SERIAL worker has.
class ModelRun {
 public:
  /// Runs the startup program and compiles main. Fails the test when anything goes wrong.
  ModelRun(const ModelDesc& model, const SlotSchema& schema, CompileOptions options);

  /// Trains on the batch; returns its loss.
  float Train(const SlotBatch& batch);
  /// A tensor of the last batch.
  std::vector<float> Values(const std::string& name) const;
  /// The gradient of a dense parameter that the last batch gave, whatever holds it. It must be fetched.
  std::vector<float> Gradient(const std::string& parameter) const;
  /// How the loss of a batch changes with `value`, of a parameter, by the difference of two losses. Parameters must
  /// stay where they are: without optimizer (CompileOptions::skip_ops).
  double NumericGradient(const SlotBatch& batch, float* value);
  const CompiledModel& model() const { return model_; }
  const Executable& executable() const { return *executable_; }
  Scope& root() { return root_; }
  const Frame& frame() const { return *frame_; }

 private:
  const SlotSchema* schema_;
  CompiledModel model_;
  Scope root_;
  std::unique_ptr<const Executable> executable_;
  std::unique_ptr<Frame> frame_;
  int64_t step_ = 0;
};

}  // namespace millrace
