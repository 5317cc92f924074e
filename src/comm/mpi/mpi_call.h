#pragma once

#include <mpi.h>

#include <cstddef>

#include "core/status.h"

namespace millrace {

/// Maximum size per MPI call: MPI's counts are int, and transports have further limits.
inline constexpr size_t kMpiPiece = size_t{32} << 20;

/// Ok, or kUnavailable with MPI's description of `error`: the network or a rank is gone. `peer` is the other rank; -1:
/// none.
Status MpiStatus(const char* call, int error, int peer = -1);

}  // namespace millrace
