#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/executable.h"

namespace millrace {

/// A training program as a pipeline runs it: what each section does for a micro-batch, and what it updates after the
/// last one. Immutable, shared by all pipelines of a job.
struct PipelineProgram {
  std::unique_ptr<const Executable> step;
  std::unique_ptr<const Executable> update;
  /// By section: gradients that its backward operators write and updates read.
  std::vector<std::vector<std::string>> gradients;

  int sections() const { return static_cast<int>(gradients.size()); }
  OpRange forward(int section) const { return step->parts()[Index(section)]; }
  OpRange backward(int section) const { return step->parts()[2 * gradients.size() - 1 - Index(section)]; }
  OpRange updates(int section) const { return update->parts()[gradients.size() - 1 - Index(section)]; }

 private:
  static size_t Index(int section) { return static_cast<size_t>(section); }
};

/// Cuts and compiles `program`; `cuts` are those of CutIntoSections, of whose errors and those of Executable::Compile
/// the first kind comes back.
Result<std::unique_ptr<const PipelineProgram>> CompilePipeline(const ProgramDesc& program, const OpRegistry& registry,
                                                               const CompileOptions& options,
                                                               const std::vector<std::vector<std::string>>& cuts);

}  // namespace millrace
