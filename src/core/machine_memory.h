#pragma once

#include <string>

namespace millrace {

/// Bytes of memory that this machine, or the container that this process runs in, has, used or not.
double PhysicalMemory();

/// "12.5 GiB".
std::string Gibibytes(double bytes);

}  // namespace millrace
