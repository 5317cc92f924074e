#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "device_worker/gradient_sums.h"
#include "runtime/frame.h"
#include "runtime/pipeline_program.h"

namespace millrace {

/// The one place where the dense parameters of a worker come from before a batch, and where its gradients go behind it.
///
/// A worker that has one (docs/adr/0013-dense-parameters.md) runs the step of a program that is cut before its updates
/// (PipelineProgram); one that has none runs the program whole, its updates among the operators. Parameters that lie
/// elsewhere are a class of this.
///
/// A batch here is a mini-batch: one batch of a HogwildWorker, `micro_batches` of a SectionWorker. Pull is called by
/// one thread, while nothing of the batch runs; Add and Push of a section by one thread at a time, those of different
/// sections side by side. A failure ends the run.
class DenseParameters {
 public:
  virtual ~DenseParameters() = default;
  /// Before the first operator of a batch: the parameters are to be those that it trains.
  virtual Status Pull(const RunContext& first) = 0;
  /// Behind the backward operators of a section: takes the gradients that they left in the worker's frame of this
  /// number. With `anew` a batch begins there, else they add to those that came before.
  virtual Status Add(int section, size_t frame, bool anew) = 0;
  /// Behind the last Add of a section and batch, which `micro_batches` made: the parameters take their mean.
  virtual Status Push(int section, const RunContext& first, int micro_batches) = 0;
};

/// Of workers that share their parameters: they are there already, and the updates are operators of the program.
class LocalDenseParameters final : public DenseParameters {
 public:
  /// `frames` are those of the step. All that is given outlives the object. GradientSums' and Frame's errors.
  static Result<std::unique_ptr<LocalDenseParameters>> Create(const PipelineProgram& program,
                                                              const std::vector<const Frame*>& frames, Scope& root,
                                                              const FrameOptions& options);

  Status Pull(const RunContext&) override { return Status::Ok(); }
  Status Add(int section, size_t frame, bool anew) override { return sums_->Add(section, frame, anew); }
  Status Push(int section, const RunContext& first, int micro_batches) override;
  /// What runs the updates.
  Frame& update() { return *update_; }

 private:
  const PipelineProgram* program_ = nullptr;
  std::unique_ptr<GradientSums> sums_;
  std::unique_ptr<Frame> update_;  ///< of program_->update, below the sums' scope
};

}  // namespace millrace
