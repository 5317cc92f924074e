#pragma once

#include <map>
#include <string>
#include <vector>

#include "data_feed.pb.h"

namespace millrace::testing {

/// One case of a tests/cases/multi_slot/*.case file: lines and what each becomes.
struct LineCase {
  struct Step {
    std::string line;      ///< escapes resolved
    std::string expected;  ///< "row a=1 b=2", "blank" or "error COLUMN KIND MESSAGE"
    int line_number = 0;   ///< in the case file
  };
  std::string name;
  DataFeedDesc desc;
  std::vector<std::string> classes;  ///< "Q", "M"
  std::vector<Step> steps;
  std::map<std::string, int64_t> counters;  ///< after all steps
};

/// Reads a case file; a malformed one is a CHECK.
std::vector<LineCase> ReadLineCases(const std::string& path);

/// Resolves \t \r \v \f \\ and \xNN.
std::string Unescape(const std::string& text);

}  // namespace millrace::testing
