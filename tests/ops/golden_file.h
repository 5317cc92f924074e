#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/registry.h"

namespace millrace {

/// A variable's value as a golden file writes it.
struct GoldenValue {
  std::string parameter;
  std::string name;
  VarMeta meta;
  std::vector<double> values;
  std::vector<uint32_t> lod;
  std::vector<uint64_t> rows;  ///< of a SelectedRows
  int64_t height = 0;
};

/// One operator, the inputs of each of its runs, and what it must answer after the last.
struct GoldenCase {
  std::string title;
  OpDesc op;
  std::vector<std::vector<GoldenValue>> steps;
  std::vector<GoldenValue> expected;
};

/// Reads tests/golden/ops/OP.txt; empty when there is no such file. A line that does not parse fails the test.
std::vector<GoldenCase> ReadGolden(const std::string& op);
/// The operators that have such a file. Reads none of them: this runs at each start of a test program.
std::vector<std::string> OpsWithGolden();

/// Gives a variable of the session this value.
void Put(const GoldenValue& value, OpSession& session);
/// A tensor's values, of whatever type.
std::vector<double> ValuesOf(const Tensor& tensor);

}  // namespace millrace
