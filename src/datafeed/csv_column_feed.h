#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "datafeed/column_feed.h"
#include "features/csv_cutter.h"

namespace millrace {

/// Rows of CSV lines, from whose columns features make slots. Columns are found by the names in a file's header or,
/// without headers, in `csv.names`. One thread.
class CsvColumnFeed final : public ColumnFeed, public HeadedFeed {
 public:
  /// Fails with kBadData if `csv.names` lacks a column of the plan.
  static Result<std::unique_ptr<DataFeed>> Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                  const ColumnSetup& setup);

  Status TakeHeader(std::string_view header) override;
  const std::string& note() const override { return note_; }

 private:
  CsvColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc, CsvDialect dialect);
  /// Column positions of a line.
  struct Layout {
    std::vector<std::string> names;
    std::vector<int> places;  ///< index in the plan's columns, or -1
  };

  LineResult Read(std::string_view line) override;
  /// Fails with kBadData if another delimiter would give the header the plan's names.
  Status CheckDelimiter(std::string_view header, const std::vector<std::string>& names) const;
  /// Finds the plan's columns among `names`.
  Status TakeNames(const std::vector<std::string>& names, const std::string& of);
  /// Adds the layout of lines without columns of unused slots.
  void TakeShortLines();
  bool IsOfJob(const std::string& column) const;
  LineResult FailWidth(std::string_view line);
  /// Guesses the cause of a bad line.
  std::string HintOn(std::string_view line) const;
  std::string AdviceOnDelimiter(char other) const;
  /// Whether a value is a column name, like all values of a header.
  bool IsName(std::string_view text) const {
    return !text.empty() && first_bytes_[static_cast<unsigned char>(text[0])] && named_.contains(text);
  }
  /// Whether a line is a header again, as in concatenated files: true if its columns have the file's positions.
  /// Nullopt: it is a row.
  std::optional<bool> HeaderAgain(std::string_view line) const;
  /// Turns a repeated header into a bad line, and ends reading if the rows after it would be misread. False: not a
  /// header.
  bool FailHeader(std::string_view line);
  /// Compares a header with that of the first training file.
  void NoteChanges(const std::vector<std::string>& names);

  CsvDialect dialect_;
  CsvCutter cut_;
  bool has_headers_ = false;
  std::string header_;
  Layout layout_;                               ///< of the current file
  Layout short_;                                ///< of lines without optional columns; empty: not accepted
  std::unordered_set<std::string_view> named_;  ///< the names of layout_
  std::bitset<256> first_bytes_;                ///< first bytes of these names
  std::string note_;
  std::vector<std::string> trained_;  ///< columns of the first training file; empty: unknown
  std::shared_ptr<WarnOnce> said_;
  std::vector<std::string> of_job_;  ///< columns used by the job's slots, sorted
};

/// The column names in a header. Fails with kBadData if a field is malformed.
Result<std::vector<std::string>> CsvHeaderNames(std::string_view header, const DataFeedDesc& desc);

/// Returns the function that separates the header from a file's first line; null if files have no header.
std::string_view (*CsvHeaderOf(const DataFeedDesc& desc))(std::string_view first_line);

}  // namespace millrace
