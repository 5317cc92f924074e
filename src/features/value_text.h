#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

class DataFeedDesc;

/// How values become texts (FeatureStates.text_rule; docs/features.md, "Texts of values").
enum class TextRule : uint8_t {
  kByFormat = 1,   ///< models before 2: each format has texts of its own
  kCanonical = 2,  ///< a value has one text, whatever the format
};

/// The rule of new jobs.
inline constexpr TextRule kNewTextRule = TextRule::kCanonical;

TextRule TextRuleOf(const DataFeedDesc& desc);

/// The text of a number as Python writes it, with the fewest digits that are read back as the same number: "3.0",
/// "0.1", "1e+16". kNumberPadding bytes behind it may be read.
std::string_view TextOfFloat(double value, std::string* text);

/// CanonicalText of a text that may be a number or a time: its first byte is no letter.
std::string_view CanonicalTextOfNumber(std::string_view text, std::string* scratch);

/// The canonical text of a word. Floats are written as by TextOfFloat, where a program may have written them with the
/// fewest digits: "1.2345678e+07" is "12345678.0", while "1.10", "007" and "12e5" stay. Times of ISO 8601 have a space,
/// seconds and no needless digits, at midnight the date alone; with a zone they are the instant in UTC, with a Z. All
/// other texts stay as they are. The result lies in `text` or in `scratch`. kNumberPadding bytes behind `text` may be
/// read.
inline std::string_view CanonicalText(std::string_view text, std::string* scratch) {
  if (text.empty() || text[0] > '9') return text == "NaN" ? std::string_view("nan") : text;
  return CanonicalTextOfNumber(text, scratch);
}

/// Without the spaces and tabs around it.
inline std::string_view WithoutSpaces(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace millrace
