#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "paths.h"

namespace millrace {

/// The folder of data sets and jobs that stands beside a checkout (MILLRACE_SHARED, or ../shared); empty when it is not
/// there. Tests that need it skip with that reason.
inline std::string SharedDataDir() {
  if (const char* set = std::getenv("MILLRACE_SHARED"); set != nullptr) return set;
  const std::string beside = SourceDir() + "/../shared";
  return std::filesystem::is_directory(beside) ? beside : "";
}

}  // namespace millrace

/// Defines `name` as SharedDataDir(), or skips the test.
#define MR_SHARED_OR_SKIP(name)                         \
  const std::string name = ::millrace::SharedDataDir(); \
  if (name.empty()) GTEST_SKIP() << "no shared data: set MILLRACE_SHARED, or put shared/ beside the checkout"
