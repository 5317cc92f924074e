#pragma once

#include <set>
#include <string>

#include "framework.pb.h"

namespace millrace {

/// Names that a program's learning rates come from: what its operators take as LearningRate, and what that is computed
/// of, but for parameters and for what the program keeps from step to step (a counter of steps). A persistable one
/// among them is a setting of the job rather than a result of training.
std::set<std::string> RateVariables(const ProgramDesc& program);

}  // namespace millrace
