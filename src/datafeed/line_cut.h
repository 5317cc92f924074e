#pragma once

#include <string_view>

namespace millrace {

struct Framing;

/// What the lines of a file are, for a class of data feed.
struct LineCut {
  /// Records of a binary format, whatever bytes they hold; null: lines of text.
  const Framing* framing = nullptr;
  /// What of a file's first line names the columns of the others; empty when it does not. Null: it never does.
  std::string_view (*header)(std::string_view first_line) = nullptr;
};

}  // namespace millrace
