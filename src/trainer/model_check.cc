#include "trainer/model_check.h"

#include <string>
#include <utility>

#include "runtime/finite_variables.h"

namespace millrace {

Status CheckToBeSaved(const JobSession& session, int64_t step, RunReport* report) {
  if (session.job().desc().allow_non_finite() || report->finite_step == step) return Status::Ok();
  // Ranks are asked for one table at a time.
  const Status finite = CheckFiniteVariables(session.job().model().main, session.root(),
                                             session.job().is_dist() ? 1 : session.job().threads_at_rest());
  if (finite.ok()) {
    report->finite_step = step;
    return Status::Ok();
  }
  const std::string advice =
      "\nnothing of it is saved, and what was saved before stays as it is; lower the learning rate, clip gradients, or "
      "look at the input: check_nan_var_names with one of these tensors ends a run at the batch that makes it so, and "
      "names its lines";
  return NameCheckpoint({finite.code(), finite.message() + advice}, report->saved_step);
}

Status NameCheckpoint(const Status& failure, int64_t step) {
  if (step == 0) return failure;
  return {failure.code(), failure.message() + "\nthe checkpoint of step " + std::to_string(step) +
                              " is from before that: --resume=auto goes on from it"};
}

}  // namespace millrace
