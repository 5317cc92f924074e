#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datafeed/column_feed.h"
#include "features/csv_cutter.h"

namespace millrace {

/// Rows of lines of CSV, of whose columns features make slots: found by the names in the header of a file, or, where
/// files have none, by those of `csv.names`. One thread.
class CsvColumnFeed final : public ColumnFeed, public HeadedFeed {
 public:
  static Result<std::unique_ptr<DataFeed>> Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                  const ColumnSetup& setup);

  Status TakeHeader(std::string_view header) override;
  const std::string& note() const override { return note_; }

 private:
  CsvColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc, CsvDialect dialect);
  LineResult Read(std::string_view line) override;
  /// kBadData for a header whose names are those of the plan where another delimiter cuts it.
  Status CheckDelimiter(std::string_view header, const std::vector<std::string>& names) const;
  /// Finds the columns of the plan among `names`.
  Status TakeNames(const std::vector<std::string>& names, const std::string& of);
  LineResult FailWidth(std::string_view line);
  /// Compares a header with that of the file that trained first.
  void NoteChanges(const std::vector<std::string>& names);

  CsvDialect dialect_;
  CsvCutter cut_;
  bool has_headers_ = false;
  std::string header_;
  std::string_view header_line_;  ///< the same as a line of the file
  std::string note_;
  std::vector<std::string> trained_;  ///< columns of the file that trained first; empty: not known
  std::shared_ptr<SaidOnce> said_;
  std::vector<int> places_;  ///< by position in a line: the column of the plan, or -1
};

/// The columns that a header names.
Result<std::vector<std::string>> CsvHeaderNames(std::string_view header, const DataFeedDesc& desc);

/// Takes the header off a first line, where every file has one; null where none has.
std::string_view (*CsvHeaderOf(const DataFeedDesc& desc))(std::string_view first_line);

}  // namespace millrace
