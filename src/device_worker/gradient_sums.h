#pragma once

#include <memory>
#include <vector>

#include "runtime/frame.h"
#include "runtime/pipeline_program.h"

namespace millrace {

/// Adds up the gradients of a mini-batch's micro-batches, for the updates of a pipeline.
///
/// Sections are independent of each other: each may be added to by a thread of its own.
class GradientSums {
 public:
  /// Variables for the sums in a scope below `root`, of the kinds that `frames`, those of the step, have. The frames
  /// outlive the object.
  static Result<std::unique_ptr<GradientSums>> Create(const PipelineProgram& program,
                                                      const std::vector<const Frame*>& frames, Scope& root);

  /// Adds what the backward operators of `section` left in the frame of this number; with `anew` the sums start there.
  /// SelectedRows::AppendRows' errors.
  Status Add(int section, size_t frame, bool anew);
  /// Divides the sums of a section.
  void Divide(int section, int micro_batches);

  /// Root of the updates' frame.
  Scope& scope() { return scope_; }

 private:
  struct Sum {
    Variable* sum = nullptr;
    std::vector<const Variable*> of;  ///< by frame
  };
  explicit GradientSums(Scope& root) : scope_(&root) {}

  Scope scope_;
  std::vector<std::vector<Sum>> sums_;  ///< as PipelineProgram::gradients
};

}  // namespace millrace
