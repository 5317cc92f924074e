#pragma once

#include <cstdint>
#include <string_view>

#include "core/digits.h"

namespace millrace {

/// Splits a libsvm line, `LABEL INDEX:VALUE ... # comment`, from its front.
class LibsvmLine {
 public:
  explicit LibsvmLine(std::string_view line) : rest_(line.substr(0, line.find('#'))) {}

  /// The next token: the label, then tokens left by TakePlainPairs. Empty at the end.
  std::string_view Next() {
    size_t begin = 0;
    while (begin < rest_.size() && IsBlank(rest_[begin])) ++begin;
    size_t end = begin;
    while (end < rest_.size() && !IsBlank(rest_[end])) ++end;
    const std::string_view token = rest_.substr(begin, end - begin);
    rest_.remove_prefix(end);
    return token;
  }

  /// Takes INDEX:VALUE pairs in their usual form: indices above `last` in ascending order up to `most`, values in plain
  /// decimals. Calls `put(index, value)` for each and sets `last`. Stops at the end or at the first other token, which
  /// the strict path parses. Reads up to 64 bytes after the line (LineBlock::kPadding).
  template <class Put>
  void TakePlainPairs(int64_t most, int64_t* last, DigitGuess* guess, const Put& put) {
    const char* const end = rest_.data() + rest_.size();
    const auto ends = [end](const char* at) { return at == end || IsBlank(*at); };
    const char* taken = rest_.data();
    int64_t before = *last;
    for (;;) {
      const char* at = taken;
      while (at < end && *at == ' ') ++at;
      int64_t index = 0;
      const char* const digits = at;
      for (; *at >= '0' && *at <= '9' && at - digits < 18; ++at) index = 10 * index + (*at - '0');
      if (at == digits || at >= end || *at != ':' || index <= before || index > most) break;
      float value = 0;
      at = ReadPlainFloat(at + 1, &value, guess, ends);
      if (at == nullptr) break;
      put(index, value);
      taken = at;
      before = index;
    }
    *last = before;
    rest_.remove_prefix(static_cast<size_t>(taken - rest_.data()));
  }

  /// The remaining line, without the comment.
  std::string_view rest() const { return rest_; }

 private:
  static bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

  std::string_view rest_;
};

}  // namespace millrace
