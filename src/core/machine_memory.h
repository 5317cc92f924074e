#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// Bytes of memory that this machine, or the container that this process runs in, has, used or not.
double PhysicalMemory();

/// Most bytes of memory that this process has had in use so far.
int64_t PeakMemory();

/// "12.5 GiB".
std::string Gibibytes(double bytes);

}  // namespace millrace
