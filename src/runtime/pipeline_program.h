#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/executable.h"

namespace millrace {

/// A training program for a pipeline: the operators of each section for a micro-batch, and the updates after the last
/// one. Immutable, shared by all pipelines of a job.
struct PipelineProgram {
  std::unique_ptr<const Executable> step;
  std::unique_ptr<const Executable> update;
  /// By section: gradients written by its backward operators and read by updates.
  std::vector<std::vector<std::string>> gradients;

  int sections() const { return static_cast<int>(gradients.size()); }
  OpRange forward(int section) const { return step->parts()[Index(section)]; }
  OpRange backward(int section) const { return step->parts()[2 * gradients.size() - 1 - Index(section)]; }
  OpRange updates(int section) const { return update->parts()[gradients.size() - 1 - Index(section)]; }

 private:
  static size_t Index(int section) { return static_cast<size_t>(section); }
};

/// Cuts and compiles `program`; `cuts` are those of CutIntoSections. Fails with kInvalidConfig like CutIntoSections and
/// Executable::Compile.
Result<std::unique_ptr<const PipelineProgram>> CompilePipeline(const ProgramDesc& program, const OpRegistry& registry,
                                                               const CompileOptions& options,
                                                               const std::vector<std::vector<std::string>>& cuts);

}  // namespace millrace
