#include "checkpoint/operator_states.h"

#include "core/harmless_text.h"
#include "job/input_fingerprint.h"
#include "runtime/kernel_state.h"

namespace millrace {
namespace {

Status SaveKernel(const NamedKernelState& kernel, std::string* bytes) {
  try {
    return Harmless(kernel.state->SaveState(bytes));
  } catch (...) {
    return OperatorThrew(*kernel.info);
  }
}

Status LoadKernel(const NamedKernelState& kernel, const std::string& bytes, const std::stop_token& stop) {
  try {
    return Harmless(kernel.state->LoadState(bytes, stop));
  } catch (...) {
    return OperatorThrew(*kernel.info);
  }
}

Status LoadKernel(const NamedKernelState& kernel, const OperatorState& saved, const std::stop_token& stop) {
  Status same = CompareFingerprints(saved.attributes, OperatorFingerprint(OpView(*kernel.op, *kernel.info)));
  if (!same.ok()) {
    return InvalidConfig(same.message() +
                         "; its state in the checkpoint is of what it was, so restore it, or start anew with "
                         "--resume=never");
  }
  return LoadKernel(kernel, saved.bytes, stop);
}

/// Who has a state, and what must be as it was so that there are as many of them.
std::string WhereOf(int frame, bool is_pipeline) {
  return (is_pipeline ? "frame " : "worker ") + std::to_string(frame);
}
std::string GoOnWith(bool is_pipeline) {
  return std::string("go on with the program and the ") +
         (is_pipeline ? "thread_num, section_param.num_microbatches, schedule_mode and section_config" : "thread_num") +
         " that wrote it";
}

}  // namespace

Result<std::vector<OperatorState>> SaveOperatorStates(const std::vector<const Frame*>& frames) {
  std::vector<OperatorState> states;
  for (size_t i = 0; i < frames.size(); ++i) {
    for (const NamedKernelState& kernel : frames[i]->states()) {
      OperatorState& state = states.emplace_back();
      state.name = kernel.name;
      state.frame = static_cast<int>(i);
      state.attributes = OperatorFingerprint(OpView(*kernel.op, *kernel.info));
      MR_TRY(SaveKernel(kernel, &state.bytes).Context("the state of " + kernel.name));
    }
  }
  return states;
}

Status LoadOperatorStates(const std::vector<OperatorState>& states, const std::vector<const Frame*>& frames,
                          bool is_pipeline, const std::stop_token& stop) {
  auto next = states.begin();
  for (size_t i = 0; i < frames.size(); ++i) {
    for (const NamedKernelState& kernel : frames[i]->states()) {
      if (next == states.end() || next->name != kernel.name || next->frame != static_cast<int>(i)) {
        return InvalidConfig("the checkpoint has no state of the operator " + kernel.name + " of " +
                             WhereOf(static_cast<int>(i), is_pipeline) + ": " + GoOnWith(is_pipeline));
      }
      MR_TRY(LoadKernel(kernel, *next, stop).Context("the state of " + kernel.name));
      ++next;
    }
  }
  if (next == states.end()) return Status::Ok();
  return InvalidConfig("the checkpoint has a state of the operator " + next->name + " of " +
                       WhereOf(next->frame, is_pipeline) + ", which this run has not: " + GoOnWith(is_pipeline));
}

}  // namespace millrace
