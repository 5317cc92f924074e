#include "core/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "core/number_format.h"

namespace millrace {

double PhysicalMemory() {
  const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  double limit = 0;  // a container's; the file holds "max" where there is none
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;
  return limit > 0 ? std::min(limit, machine) : machine;
}

std::string Gibibytes(double bytes) { return GeneralNumber(bytes / (1 << 30), 4) + " GiB"; }

}  // namespace millrace
