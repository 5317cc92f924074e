#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datafeed/value_names.h"

namespace millrace {

class DataFeedDesc;

/// Tracks, line by line, how columns of words write integers and booleans, and which zones and units their times have.
/// One thread. A column with other numbers or strings is a column of words and is not tracked further.
class NumberForms {
 public:
  /// Tracks the columns among these that are words (WordColumns) or times. Without `with_numbers`, tracks only times
  /// and the encoding of words.
  NumberForms(const std::vector<std::string>& columns, const DataFeedDesc& desc, bool with_numbers);

  /// The values of a line by column. Empty ones are missing; kNumberPadding bytes after each are readable.
  struct Line {
    std::string_view bytes;  ///< texts can lie elsewhere
    std::span<const std::string_view> texts;
    std::span<const size_t> begins;                            ///< offsets of the columns in the line
    std::span<const std::span<const std::string_view>> lists;  ///< replace texts; or empty
  };
  /// Records the values of a line. Returns its number of values of NumberForm::nth.
  int64_t TakeLine(const Line& line);
  /// Records words that are not UTF-8. Call it before TakeLine for a line with bytes above 0x7F.
  void LookForOtherBytes(const Line& line);

  void AddTo(ValueNames* names) const;

 private:
  enum Form : uint8_t {
    kNone = 0,
    kWhole = 1,
    kWholeFloat = 2,
    kOther = 4,
    kTruth = 8,
    kNotUtf8 = 16,
    kZone = 32,
    kOf1970 = 64
  };
  static Form FormOf(std::string_view text);
  /// Calls look(text, offset in the line) for each value of a column that is not missing.
  template <class Look>
  static void ForEachValue(const Line& line, size_t column, const Look& look);
  void LookAtNumber(size_t column, std::string_view text, size_t at);
  /// A column that may hold times.
  struct Times {
    size_t column = 0;
    bool is_clock = false;  ///< date_part uses local time
    bool are_milliseconds = false;
    bool has_later = false;               ///< later than 1970, in milliseconds
    std::vector<std::string> zones = {};  ///< zones seen in lines
    bool has_last = false;
    std::string last_end = {};  ///< end of the last text whose zone was checked
  };
  void LookAtTime(Times* times, std::string_view text, size_t at);

  struct Found {
    size_t column;
    Form form;
    NumberForm value;
    std::string zone = {};
  };
  const std::vector<std::string>* columns_;
  std::map<std::string, NumberForm> trained_;
  std::vector<uint8_t> seen_;      ///< by column: forms seen in lines
  std::vector<size_t> words_;      ///< columns of words
  std::vector<int64_t> not_utf8_;  ///< by column
  std::vector<size_t> watched_;
  std::vector<Times> times_;
  std::map<std::string, std::map<std::string, NumberForm>> trained_zones_;
  std::vector<Found> found_;  ///< in the current line
  std::vector<Found> kept_;
};

}  // namespace millrace
