#include "runtime/pipeline_program.h"

namespace millrace {

namespace {

/// `program` without skipped operators in block 0, so that the compiled operators are cut.
ProgramDesc WithoutSkipped(const ProgramDesc& program, const std::vector<std::string>& skip_ops) {
  ProgramDesc kept = program;
  BlockDesc& block = *kept.mutable_blocks(0);
  block.clear_ops();
  for (const OpDesc& op : program.blocks(0).ops()) {
    if (!IsSkipped(op, skip_ops)) *block.add_ops() = op;
  }
  return kept;
}

}  // namespace

Result<std::unique_ptr<const PipelineProgram>> CompilePipeline(const ProgramDesc& program, const OpRegistry& registry,
                                                               const CompileOptions& options,
                                                               const std::vector<std::vector<std::string>>& cuts) {
  const bool skips = !options.skip_ops.empty() && program.blocks_size() > 0;
  MR_ASSIGN(SectionCut cut,
            CutIntoSections(skips ? WithoutSkipped(program, options.skip_ops) : program, registry, cuts));
  auto pipeline = std::make_unique<PipelineProgram>();
  CompileOptions step = options;
  step.skip_ops.clear();
  step.parts = std::move(cut.step_parts);
  for (const std::vector<std::string>& names : cut.gradients) {
    step.fetches.insert(step.fetches.end(), names.begin(), names.end());
  }
  MR_ASSIGN(pipeline->step,
            Executable::Compile(std::make_shared<const ProgramDesc>(std::move(cut.step)), registry, step));
  CompileOptions update;
  update.device = options.device;
  update.fuse = options.fuse;
  update.stop = options.stop;
  update.parts = std::move(cut.update_parts);
  MR_ASSIGN(pipeline->update,
            Executable::Compile(std::make_shared<const ProgramDesc>(std::move(cut.update)), registry, update));
  pipeline->gradients = std::move(cut.gradients);
  return std::unique_ptr<const PipelineProgram>(std::move(pipeline));
}

}  // namespace millrace
