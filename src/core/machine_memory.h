#pragma once

#include <string>

namespace millrace {

/// Total bytes of memory of this machine or of this process's container.
double PhysicalMemory();

/// "12.5 GiB".
std::string Gibibytes(double bytes);

}  // namespace millrace
