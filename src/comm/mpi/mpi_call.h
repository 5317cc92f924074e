#pragma once

#include <mpi.h>

#include <cstddef>

#include "core/status.h"

namespace millrace {

/// Counts of MPI are int, and transports have limits of their own: nothing longer is given to one call.
inline constexpr size_t kMpiPiece = size_t{32} << 20;

/// Ok, or kUnavailable with what MPI says of `error`: the network, or a rank, is gone. `peer` names the other side, -1
/// none.
Status MpiStatus(const char* call, int error, int peer = -1);

}  // namespace millrace
