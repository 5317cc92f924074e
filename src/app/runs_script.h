#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// Replaces this process with the scripts of python/runs, which find these arguments after this program's path. Signals
/// stay blocked until the scripts handle them, and descriptors without FD_CLOEXEC stay open. Returns only a failure:
/// kNotFound where the installation lacks the scripts, kUnavailable where Python cannot be started.
Status BecomeRunsScript(const std::vector<std::string>& arguments);

}  // namespace millrace
