#pragma once

#include <cstddef>

namespace millrace {

/// Operators [begin, end) of a block.
struct OpRange {
  size_t begin = 0;
  size_t end = 0;
};

}  // namespace millrace
