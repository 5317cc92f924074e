#pragma once

#include <stop_token>
#include <string>

#include "core/long_work.h"
#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"

namespace millrace {

/// Reads every persistable tensor of `program` from the file with its name in `folder` (Paddle's `save_vars`) into
/// `root`. Reports all faulty files at once, with the code of the last: kNotFound, kIo, or kBadData if one is damaged
/// or has another shape or type. Fails with kInvalidConfig for a name outside the folder, kCancelled after a stop
/// request; some variables are read then.
Status LoadVariables(const ProgramDesc& program, const std::string& folder, Scope& root,
                     const std::stop_token& stop = {});

/// Read and write one file with all variables in the order of sorted names (Paddle's `.pdiparams`). Loading fails with
/// kNotFound or kIo for the file, kBadData if it does not contain exactly the program's variables, kCancelled after a
/// stop request. Saving fails like ChecksummedFile, kInternal for a variable without a value, and leaves an unfinished
/// file.
Status LoadCombined(const ProgramDesc& program, const std::string& path, Scope& root, const std::stop_token& stop = {});
Status SaveCombined(const ProgramDesc& program, const std::string& path, const Scope& root, const LongWork& work = {});

}  // namespace millrace
