#pragma once

#include <string>
#include <string_view>

#include "framework.pb.h"

namespace millrace {

/// The variable of block 0 that `prediction` is the sigmoid of, and that no later operator writes; empty: there is
/// none. It orders examples that the sigmoid rounds to one number.
std::string LogitVariable(const ProgramDesc& program, std::string_view prediction);

}  // namespace millrace
