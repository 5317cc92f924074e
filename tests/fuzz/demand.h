#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace millrace {

/// Ends a fuzz target with what went wrong, unless `holds`.
inline void Demand(bool holds, const char* what, const std::string& detail = "") {
  if (holds) return;
  std::fprintf(stderr, "%s\n%s\n", what, detail.c_str());
  std::abort();
}

}  // namespace millrace
