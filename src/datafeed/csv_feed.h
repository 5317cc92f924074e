#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "datafeed/text_feed.h"

namespace millrace {

/// What of the first line of a CSV file is a header, and empty when it is a row.
std::string_view CsvHeader(std::string_view first_line);

/// Rows of lines between commas. Under a header a slot takes the column of its name, and others count for nothing;
/// without one, the slots, used or not, take the columns in their order. A sparse slot takes one, its values between
/// blanks, a dense one as many as it has values, from the one of its name on.
class CsvFeed final : public TextFeed, public HeadedFeed {
 public:
  CsvFeed(const SlotSchema& schema, const MultiSlotOptions& options);

  Status TakeHeader(std::string_view header) override;
  const std::string& note() const override { return note_; }

 private:
  /// Where a used slot stands.
  struct Columns {
    size_t first = 0;
    size_t count = 1;
  };
  LineResult Read(std::string_view line) override;
  bool ReadSlot(const SlotSpec& slot, const Columns& columns);
  /// Adds the values of a field to floats() or ids().
  bool ReadField(const SlotSpec& slot, size_t column);
  /// Ends the reading behind a bad line that is a header which names the slots at other places, as of files that were
  /// put together: what follows would be misread.
  void LookForHeader();
  /// The columns without a header.
  void TakeOrder();
  Status TakeNames(std::string_view header);

  const std::string note_;  ///< nothing: which columns there are beside its own is nothing to it
  std::string header_;
  std::vector<Columns> columns_;  ///< by SlotId
  size_t width_ = 0;              ///< columns of a line
  std::vector<std::string_view> fields_;
};

}  // namespace millrace
