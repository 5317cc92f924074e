#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "core/status.h"
#include "core/version.h"

namespace millrace {

/// Symbols that the program looks up in the shared object: a tag that must equal its own, and a function.
inline constexpr char kMpiTagSymbol[] = "millrace_mpi_tag";
inline constexpr char kMpiOpenSymbol[] = "millrace_mpi_open";

using MpiTagFn = const char* (*)();
using MpiOpenFn = void (*)(std::unique_ptr<Communicator>* communicator, Status* status);

/// Equal tags guarantee compatible shared classes.
inline std::string MpiTag() { return "Millrace " + std::string(MillraceVersion()) + ", compiler " __VERSION__; }

}  // namespace millrace
