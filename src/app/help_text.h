#pragma once

#include <string>
#include <string_view>

#include "app/command_line.h"

namespace millrace {

/// The text of --help. A flag's help that starts with a word in capitals and a colon names its value by it:
/// DEFINE_string(trainer_desc, "", "FILE: the job") is shown as --trainer_desc=FILE.
std::string HelpText(const ProgramInfo& program);

/// The text of --version: version, compiler, build type and what was compiled in.
std::string VersionText(std::string_view program);

}  // namespace millrace
