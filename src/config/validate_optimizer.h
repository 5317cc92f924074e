#pragma once

#include <string>

#include "config/checker.h"

namespace millrace {

class OptimizerDesc;

/// Checks the rule, its numbers and its schedule.
void CheckOptimizer(const OptimizerDesc& optimizer, const std::string& path, Checker& check);

}  // namespace millrace
