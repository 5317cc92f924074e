#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "datafeed/text_feed.h"

namespace millrace {

/// The header in the first line of a CSV file; empty if the line is a row.
std::string_view CsvHeader(std::string_view first_line);

/// Rows of comma-separated lines. With a header, a slot reads the column with its name, and other columns are ignored;
/// without one, slots, used or not, read columns in order. A sparse slot reads one column of blank-separated values. A
/// dense slot reads one column per value, starting at its name.
class CsvFeed final : public TextFeed, public HeadedFeed {
 public:
  CsvFeed(const SlotSchema& schema, const MultiSlotOptions& options);

  Status TakeHeader(std::string_view header) override;
  const std::string& note() const override { return note_; }

 private:
  /// Columns of a used slot.
  struct Columns {
    size_t first = 0;
    size_t count = 1;
  };
  LineResult Read(std::string_view line) override;
  bool ReadSlot(const SlotSpec& slot, const Columns& columns);
  /// Appends the values of a field to floats() or ids().
  bool ReadField(const SlotSpec& slot, size_t column);
  /// Ends reading after a bad line that is a header with the slots at other positions, as in concatenated files: later
  /// lines would be misread.
  void LookForHeader();
  /// Assigns columns in slot order, for files without a header.
  void TakeOrder();
  Status TakeNames(std::string_view header);

  const std::string note_;  ///< always empty: other columns do not matter to this feed
  std::string header_;
  std::vector<Columns> columns_;  ///< by SlotId
  size_t width_ = 0;              ///< columns per line
  std::vector<std::string_view> fields_;
};

}  // namespace millrace
