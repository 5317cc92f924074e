#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// Total bytes of memory of this machine or of this process's container.
double PhysicalMemory();

/// Most bytes of memory that this process has had in use so far.
int64_t PeakMemory();

/// "12.5 GiB".
std::string Gibibytes(double bytes);

}  // namespace millrace
