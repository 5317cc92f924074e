// Runs tests/cases/config/*.case: a prototxt, assignments, and the exact report that they give.
//
// MILLRACE_UPDATE_CASES=1 writes what comes out into the files; look at the difference before it is committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "config/known_names_for_tests.h"
#include "config/print_config.h"
#include "config/trainer_desc_reader.h"
#include "paths.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

const std::string kFolder = SourceDir() + "/tests/cases/config";

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".case") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The parts of a case by name, each after a line "=== NAME".
struct Case {
  std::string comment;
  std::vector<std::string> order;
  std::map<std::string, std::string> parts;
};

Case ReadCase(const std::string& path) {
  std::ifstream file(path);
  Case read;
  std::string* part = &read.comment;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("=== ")) {
      read.order.push_back(line.substr(4));
      part = &read.parts[read.order.back()];
      continue;
    }
    *part += line + "\n";
  }
  return read;
}

std::string Report(const Case& test) {
  ConfigRequest request;
  request.known = KnownNamesForTests();
  request.judge = JudgeForTests();
  request.check_files = false;
  if (test.parts.contains("set")) {
    std::istringstream lines(test.parts.at("set"));
    for (std::string line; std::getline(lines, line);) request.overrides.push_back(line);
  }
  Result<LoadedConfig> loaded = LoadTrainerDescText("job.prototxt", test.parts.at("config"), request);
  if (!loaded.ok()) {
    EXPECT_EQ(loaded.status().code(), StatusCode::kInvalidConfig);
    return loaded.status().message() + "\n";
  }
  std::string report = loaded->warnings + "ok\n";
  if (test.parts.contains("print")) report += PrintConfig(*loaded->desc);
  return report;
}

class ConfigCase : public ::testing::TestWithParam<std::string> {};

TEST_P(ConfigCase, GivesItsReport) {
  const std::string path = kFolder + "/" + GetParam() + ".case";
  Case test = ReadCase(path);
  ASSERT_TRUE(test.parts.contains("config")) << path;
  const std::string expected = test.parts.contains("print") ? "print" : "report";
  const std::string actual = Report(test);
  if (std::getenv("MILLRACE_UPDATE_CASES") != nullptr) {
    if (!test.parts.contains(expected)) test.order.push_back(expected);
    test.parts[expected] = actual;
    std::ofstream file(path);
    file << test.comment;
    for (const std::string& part : test.order) file << "=== " << part << "\n" << test.parts[part];
    return;
  }
  EXPECT_EQ(actual, test.parts[expected]);
}

INSTANTIATE_TEST_SUITE_P(Files, ConfigCase, ::testing::ValuesIn(CaseNames()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace millrace
