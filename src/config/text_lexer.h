#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "config/diagnostics.h"

namespace millrace {

/// A word of protobuf text format, as bytes [begin, end) of its source.
struct Token {
  enum class Kind { kIdentifier, kInteger, kFloat, kString, kSymbol, kBad, kEnd };
  Kind kind = Kind::kEnd;
  size_t begin = 0;
  size_t end = 0;
  bool first_on_line = false;
};

/// Splits the bytes of a source from `begin` on into words, the last one kEnd. What is no word (a bad number, a string
/// that does not end, stray bytes) is reported and comes back as kBad when it may stand for a value, or not at all.
std::vector<Token> LexText(int source, size_t begin, Diagnostics* diagnostics);

}  // namespace millrace
