#include "core/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "core/numbers.h"

namespace millrace {

double PhysicalMemory() {
  const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  double limit = 0;  // a container's; the file holds "max" where there is none
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;
  return limit > 0 ? std::min(limit, machine) : machine;
}

int64_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

std::string Gibibytes(double bytes) { return GeneralNumber(bytes / (1 << 30), 4) + " GiB"; }

}  // namespace millrace
