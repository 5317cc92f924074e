#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "framework.pb.h"

namespace millrace {

/// Reads a ProgramDesc, serialized (`.bin`, `.pdmodel`, as Paddle saves it) or as text. A file is taken as text when it
/// starts like text ("blocks", "version" or a comment). Errors name file, line and column, or say that the file is
/// neither.
Result<ProgramDesc> ReadProgram(const std::string& path);

/// The same of bytes that are at hand; `origin` stands for the file in errors.
Result<ProgramDesc> ParseProgram(const std::string& bytes, const std::string& origin);

/// The persistable variables of block 0 that hold tensors, by name, sorted; feed and fetch holders are left out.
std::vector<std::string> PersistableTensors(const ProgramDesc& program);

/// The persistable variables of block 0 that operators write, in whatever block.
std::set<std::string> WrittenPersistables(const ProgramDesc& program);

/// Whether a value of `sizes` may be that of a persistable tensor: of its shape, or where Paddle's startup programs
/// make another one than they declare.
Result<bool> Fits(const ProgramDesc& program, const VarDesc& var, std::span<const int64_t> sizes);

}  // namespace millrace
