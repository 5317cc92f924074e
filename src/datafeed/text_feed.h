#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/digits.h"
#include "datafeed/format_feed.h"

namespace millrace {

/// Base of feeds for text formats: parses numbers and reports the position of a bad one.
class TextFeed : public FormatFeed {
 protected:
  using FormatFeed::FormatFeed;

  /// Parses `token` and appends it to floats() or ids(). `token` is part of line(); 24 bytes after it are readable.
  bool ReadFloat(const SlotSpec& slot, std::string_view token);
  bool ReadId(const SlotSpec& slot, std::string_view token);
  bool BadToken(LineErrorKind kind, const SlotSpec& slot, const std::string& expected, std::string_view token);

  void set_line(std::string_view line) { line_ = line; }
  std::string_view line() const { return line_; }
  /// The position of a part of line(), in bytes from 1.
  size_t ColumnOf(std::string_view token) const { return static_cast<size_t>(token.data() - line_.data()) + 1; }
  std::vector<uint64_t>& ids() { return ids_; }
  std::vector<float>& floats() { return floats_; }
  DigitGuess* guess() { return &guess_; }

 private:
  std::string_view line_;
  std::vector<uint64_t> ids_;
  std::vector<float> floats_;
  DigitGuess guess_;
};

}  // namespace millrace
