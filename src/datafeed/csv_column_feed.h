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

 private:
  CsvColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, CsvDialect dialect);
  LineResult Read(std::string_view line) override;
  /// Finds the columns of the plan among `names`.
  Status TakeNames(const std::vector<std::string>& names, const std::string& of);
  LineResult FailWidth(std::string_view line);

  CsvDialect dialect_;
  CsvCutter cut_;
  bool has_headers_ = false;
  std::string header_;
  std::vector<int> places_;  ///< by position in a line: the column of the plan, or -1
};

/// Takes the header off a first line, where every file has one; null where none has.
std::string_view (*CsvHeaderOf(const DataFeedDesc& desc))(std::string_view first_line);

}  // namespace millrace
