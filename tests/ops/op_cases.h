#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/op_registry.h"

namespace millrace {

/// Which values a gradient test draws for an input.
enum class Draw : uint8_t {
  kAny,       ///< in [-1, 1]
  kPositive,  ///< in [0.2, 1]
  kOffZero,   ///< 0.1 to 1.1 away from 0, for functions with a kink there
  kDistinct,  ///< multiples of 0.05 without repetition, for maxima
  kSimplex,   ///< rows that add up to 1
  kClass,     ///< integers below `classes`
  kBinary,    ///< 0 or 1
  kTruth,     ///< true or false
};

struct CaseInput {
  std::string parameter;
  std::string name;
  std::vector<int64_t> shape;  ///< -1: the batch's rows, or with lod the number of values in them
  Draw draw = Draw::kAny;
  bool lod = false;  ///< sequences of `least` to 4 values a row
  int64_t classes = 0;
  bool differentiable = true;
  uint32_t least = 0;  ///< shortest sequence
};

/// An operator in a form that its gradient can be checked on: the one entry that a new operator needs here.
struct OpCase {
  std::string title;  ///< distinguishes cases of one operator
  std::string op;
  std::vector<CaseInput> inputs;
  std::vector<std::pair<std::string, std::string>> outputs;  ///< parameter and variable
  std::vector<std::pair<std::string, AttrValue>> attrs;
  std::vector<std::string> objective;  ///< outputs (by variable) whose weighted sum is differentiated
};

const std::vector<OpCase>& OpCases();

/// Operators whose answers cannot be a file of numbers, with the test that shows them instead.
const std::vector<std::pair<std::string, std::string>>& TestedElsewhere();

}  // namespace millrace
