#pragma once

#include <string>

#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"

namespace millrace {

/// Reads every persistable tensor of `program` from a file of its name in `folder` (Paddle's `save_vars`) into `root`.
/// Missing files, damaged files, and shapes or types that are not the program's are reported all at once.
Status LoadVariables(const ProgramDesc& program, const std::string& folder, Scope& root);

/// Reads and writes one file for all, in the order of sorted names (Paddle's `.pdiparams`).
Status LoadCombined(const ProgramDesc& program, const std::string& path, Scope& root);
Status SaveCombined(const ProgramDesc& program, const std::string& path, const Scope& root);

}  // namespace millrace
