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

/// Which ways of writing whole numbers and truth values the columns of words have, and which zones and units their
/// times, line by line. One thread. A column that has other numbers or texts is one of words, and is no longer looked
/// at.
class NumberForms {
 public:
  /// Of these columns those that are words (WordColumns) or times. Without `with_numbers` it looks only at times and
  /// at the encoding of words.
  NumberForms(const std::vector<std::string>& columns, const DataFeedDesc& desc, bool with_numbers);

  /// The values of a line by column. Empty ones are missing; kNumberPadding bytes behind each may be read.
  struct Line {
    std::string_view bytes;  ///< texts may lie elsewhere
    std::span<const std::string_view> texts;
    std::span<const size_t> begins;                            ///< of the columns in the line, from 0
    std::span<const std::span<const std::string_view>> lists;  ///< in place of texts; or there are none
  };
  /// Looks at the values of a line. Returns how many values of NumberForm::nth it had.
  int64_t TakeLine(const Line& line);
  /// To be called before TakeLine where a line has bytes above 0x7F: notes texts of words that are not UTF-8.
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
  /// Calls look(text, where in the line it stands) with each value of a column that is not missing.
  template <class Look>
  static void ForEachValue(const Line& line, size_t column, const Look& look);
  void LookAtNumber(size_t column, std::string_view text, size_t at);
  /// A column that has times, as far as is known.
  struct Times {
    size_t column = 0;
    bool is_clock = false;  ///< date_part takes what the clock shows
    bool are_milliseconds = false;
    bool has_later = false;               ///< than 1970, of milliseconds
    std::vector<std::string> zones = {};  ///< that lines had
    bool has_last = false;
    std::string last_end = {};  ///< of the last text whose zone was looked at
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
  std::vector<uint8_t> seen_;      ///< by column: forms that lines had
  std::vector<size_t> words_;      ///< columns of words
  std::vector<int64_t> not_utf8_;  ///< by column
  std::vector<size_t> watched_;
  std::vector<Times> times_;
  std::map<std::string, std::map<std::string, NumberForm>> trained_zones_;
  std::vector<Found> found_;  ///< in the line that is read
  std::vector<Found> kept_;
};

}  // namespace millrace
