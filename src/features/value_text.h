#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

class DataFeedDesc;

/// How values are converted to strings (FeatureStates.text_rule; docs/features.md, "Texts of values").
enum class TextRule : uint8_t {
  kByFormat = 1,   ///< models before 2: each format has its own strings
  kCanonical = 2,  ///< one string per value, for all formats
};

/// The rule for new jobs.
inline constexpr TextRule kNewTextRule = TextRule::kCanonical;

TextRule TextRuleOf(const DataFeedDesc& desc);

/// A number as Python writes it, with the fewest digits that read back unchanged: "3.0", "0.1", "1e+16". kNumberPadding
/// bytes after it are readable.
std::string_view TextOfFloat(double value, std::string* text);

/// CanonicalText of a string that may be a number or a time: its first byte is not a letter.
std::string_view CanonicalTextOfNumber(std::string_view text, std::string* scratch);

/// The canonical string of a word. Floats are written like TextOfFloat if a program may have written them with the
/// fewest digits: "1.2345678e+07" becomes "12345678.0", while "1.10", "007" and "12e5" are unchanged. ISO 8601 times
/// get a space, seconds and no redundant digits, at midnight only the date; with a zone they become UTC with a Z. Other
/// strings are unchanged. The result is in `text` or `scratch`. kNumberPadding bytes after `text` are readable.
inline std::string_view CanonicalText(std::string_view text, std::string* scratch) {
  if (text.empty() || text[0] > '9') return text == "NaN" ? std::string_view("nan") : text;
  return CanonicalTextOfNumber(text, scratch);
}

/// Trims spaces and tabs.
inline std::string_view WithoutSpaces(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace millrace
