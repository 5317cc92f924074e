#pragma once

#include <stop_token>
#include <string>

#include "core/long_work.h"
#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"

namespace millrace {

/// Reads every persistable tensor of `program` from a file of its name in `folder` (Paddle's `save_vars`) into `root`.
/// Missing files, damaged files, and shapes or types that are not the program's are reported all at once. kCancelled
/// after a stop request, with some of them read.
Status LoadVariables(const ProgramDesc& program, const std::string& folder, Scope& root,
                     const std::stop_token& stop = {});

/// Reads and writes one file for all, in the order of sorted names (Paddle's `.pdiparams`). Writing that fails, or that
/// `work` stops (kCancelled), leaves an unfinished file.
Status LoadCombined(const ProgramDesc& program, const std::string& path, Scope& root, const std::stop_token& stop = {});
Status SaveCombined(const ProgramDesc& program, const std::string& path, const Scope& root, const LongWork& work = {});

}  // namespace millrace
