#pragma once

#include <string>
#include <string_view>

#include "app/command_line.h"

namespace millrace {

/// The text of --help. A word in capitals and a colon at the start of a flag's help become the name of its value:
/// DEFINE_string(trainer_desc, "", "FILE: the job") is shown as --trainer_desc=FILE.
std::string HelpText(const ProgramInfo& program);

/// The text of --version: version, compiler, build type and compiled-in features.
std::string VersionText(std::string_view program);

}  // namespace millrace
