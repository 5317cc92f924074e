#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "framework.pb.h"
#include "framework/scope.h"

namespace millrace {

/// Reads a ProgramDesc, serialized (`.bin`, `.pdmodel`, as Paddle saves it) or as text. A file is taken as text when it
/// starts like text ("blocks", "version" or a comment). Errors name file, line and column, or say that the file is
/// neither.
Result<ProgramDesc> ReadProgram(const std::string& path);

/// The same of bytes that are at hand; `origin` stands for the file in errors.
Result<ProgramDesc> ParseProgram(const std::string& bytes, const std::string& origin);

/// The persistable variables of block 0 that hold tensors, by name, sorted; feed and fetch holders are left out.
std::vector<std::string> PersistableTensors(const ProgramDesc& program);

/// Reads every persistable tensor of `program` from a file of its name in `folder` (Paddle's `save_vars`) into `root`.
/// Missing files, damaged files, and shapes or types that are not the program's are reported all at once.
Status LoadVariables(const ProgramDesc& program, const std::string& folder, Scope& root);

/// Writes every persistable tensor of `program` to a file of its name in `folder`, which is made when it is not there.
Status SaveVariables(const ProgramDesc& program, const std::string& folder, const Scope& root);
/// The same where the startup program is known: what its `coalesce_tensor` joined (paddle.nn's recurrent layers have
/// all their weights in one variable as well) is written as its parts are now, whose memory it shares in Paddle.
Status SaveVariables(const ProgramDesc& program, const ProgramDesc& startup, const std::string& folder,
                     const Scope& root);

/// The same with one file for all, in the order of sorted names (Paddle's `.pdiparams`).
Status LoadCombined(const ProgramDesc& program, const std::string& path, Scope& root);
Status SaveCombined(const ProgramDesc& program, const std::string& path, const Scope& root);

}  // namespace millrace
