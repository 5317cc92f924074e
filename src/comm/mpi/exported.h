#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "core/status.h"
#include "core/version.h"

namespace millrace {

/// What the program looks for in the shared object: a text that must be its own, and then a function.
inline constexpr char kMpiTagSymbol[] = "millrace_mpi_tag";
inline constexpr char kMpiOpenSymbol[] = "millrace_mpi_open";

using MpiTagFn = const char* (*)();
using MpiOpenFn = void (*)(std::unique_ptr<Communicator>* communicator, Status* status);

/// Two sides with the same text agree about the classes that they share.
inline std::string MpiTag() { return "Millrace " + std::string(MillraceVersion()) + ", compiler " __VERSION__; }

}  // namespace millrace
