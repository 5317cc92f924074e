#pragma once

#include <memory>
#include <vector>

#include "runtime/frame.h"
#include "runtime/pipeline_program.h"

namespace millrace {

/// Sums the gradients of a mini-batch's micro-batches, for the updates of a pipeline.
///
/// Sections are independent: each can be summed by its own thread.
class GradientSums {
 public:
  /// Creates variables for the sums in a scope below `root`, of the kinds found in `frames`, the frames of the step.
  /// The frames must outlive the object. Fails with kInternal if a gradient is missing in the frames.
  static Result<std::unique_ptr<GradientSums>> Create(const PipelineProgram& program,
                                                      const std::vector<const Frame*>& frames, Scope& root);

  /// Adds the gradients left by the backward operators of `section` in frame `frame`; `anew` restarts the sums. Fails
  /// like SelectedRows::AppendRows.
  Status Add(int section, size_t frame, bool anew);
  /// Divides the sums of a section by `micro_batches`.
  void Divide(int section, int micro_batches);

  /// Parent scope for the updates' frame.
  Scope& scope() { return scope_; }

 private:
  struct Sum {
    Variable* sum = nullptr;
    std::vector<const Variable*> of;  ///< by frame
  };
  explicit GradientSums(Scope& root) : scope_(&root) {}

  Scope scope_;
  std::vector<std::vector<Sum>> sums_;  ///< like PipelineProgram::gradients
};

}  // namespace millrace
