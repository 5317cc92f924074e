#include "runtime/pipeline_program.h"

namespace millrace {

Result<std::unique_ptr<const PipelineProgram>> CompilePipeline(const ProgramDesc& program, const OpRegistry& registry,
                                                               const CompileOptions& options,
                                                               const std::vector<std::vector<std::string>>& cuts) {
  MR_ASSIGN(SectionCut cut, CutIntoSections(program, registry, cuts));
  auto pipeline = std::make_unique<PipelineProgram>();
  CompileOptions step = options;
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
