#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "device_worker/gradient_sums.h"
#include "runtime/frame.h"
#include "runtime/pipeline_program.h"

namespace millrace {

/// Provides a worker's dense parameters before a batch and receives its gradients after it; the only place that does.
///
/// A worker with such an object (docs/adr/0013-dense-parameters.md) runs the step of a program cut before its updates
/// (PipelineProgram); a worker without runs the whole program, including its updates. A class for parameters stored
/// elsewhere derives from this one.
///
/// A batch here is a mini-batch: one batch of a HogwildWorker, `micro_batches` of a SectionWorker. One thread calls
/// Pull, while no operator of the batch runs. Add and Push of a section are called by one thread at a time, those of
/// different sections concurrently. Functions fail if the exchange or an update fails, kUnavailable if another rank is
/// lost; a failure ends the run.
class DenseParameters {
 public:
  virtual ~DenseParameters() = default;
  /// Before the first operator of a batch: provides the parameters to train.
  virtual Status Pull(const RunContext& first) = 0;
  /// After the backward operators of a section: takes their gradients from the worker's frame of this number. `anew`
  /// starts a batch; otherwise they are added to the earlier ones.
  virtual Status Add(int section, size_t frame, bool anew) = 0;
  /// After the last Add of a section and batch: updates the parameters with the mean over `micro_batches`.
  virtual Status Push(int section, const RunContext& first, int micro_batches) = 0;
};

/// For workers that share their parameters in memory: the updates are operators of the program.
class LocalDenseParameters final : public DenseParameters {
 public:
  /// `frames` are those of the step. All arguments must outlive the object. Fails like GradientSums::Create and
  /// Frame::Create.
  static Result<std::unique_ptr<LocalDenseParameters>> Create(const PipelineProgram& program,
                                                              const std::vector<const Frame*>& frames, Scope& root,
                                                              const FrameOptions& options);

  Status Pull(const RunContext&) override { return Status::Ok(); }
  Status Add(int section, size_t frame, bool anew) override { return sums_->Add(section, frame, anew); }
  Status Push(int section, const RunContext& first, int micro_batches) override;
  /// The frame that runs the updates.
  Frame& update() { return *update_; }

 private:
  const PipelineProgram* program_ = nullptr;
  std::unique_ptr<GradientSums> sums_;
  std::unique_ptr<Frame> update_;  ///< for program_->update, below the sums' scope
};

}  // namespace millrace
