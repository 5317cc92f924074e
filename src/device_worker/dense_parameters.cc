#include "device_worker/dense_parameters.h"

#include <utility>

namespace millrace {

Result<std::unique_ptr<LocalDenseParameters>> LocalDenseParameters::Create(const PipelineProgram& program,
                                                                           const std::vector<const Frame*>& frames,
                                                                           Scope& root, const FrameOptions& options) {
  auto local = std::make_unique<LocalDenseParameters>();
  local->program_ = &program;
  MR_ASSIGN(local->sums_, GradientSums::Create(program, frames, root));
  MR_ASSIGN(local->update_, Frame::Create(*program.update, nullptr, local->sums_->scope(), options));
  return local;
}

Status LocalDenseParameters::Push(int section, const RunContext& first, int micro_batches) {
  sums_->Divide(section, micro_batches);
  // For learning rates, an update counts as the first step of its mini-batch.
  return update_->RunOps(first, program_->updates(section));
}

}  // namespace millrace
