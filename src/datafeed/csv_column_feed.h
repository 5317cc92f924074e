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
  /// What a line has at which position.
  struct Layout {
    std::vector<std::string> names;
    std::vector<int> places;  ///< the column of the plan, or -1
  };

  LineResult Read(std::string_view line) override;
  /// kBadData for a header whose names are those of the plan where another delimiter cuts it.
  Status CheckDelimiter(std::string_view header, const std::vector<std::string>& names) const;
  /// Finds the columns of the plan among `names`.
  Status TakeNames(const std::vector<std::string>& names, const std::string& of);
  /// Lays out lines without the columns of slots that are not read.
  void TakeShortLines();
  bool IsOfJob(const std::string& column) const;
  LineResult FailWidth(std::string_view line);
  /// What a line that is wrong seems to be.
  std::string HintOn(std::string_view line) const;
  std::string AdviceOnDelimiter(char other) const;
  /// Whether a value is the name of a column, as all values of a header are.
  bool IsName(std::string_view text) const {
    return !text.empty() && first_bytes_[static_cast<unsigned char>(text[0])] && named_.contains(text);
  }
  /// Whether a line names columns, as a header does, of files that were put together: true where they stand at the
  /// places of those of the file. Nullopt: it is a row.
  std::optional<bool> HeaderAgain(std::string_view line) const;
  /// Makes a bad line of a header, and ends the reading behind one whose rows would be misread. False: it is none.
  bool FailHeader(std::string_view line);
  /// Compares a header with that of the file that trained first.
  void NoteChanges(const std::vector<std::string>& names);

  CsvDialect dialect_;
  CsvCutter cut_;
  bool has_headers_ = false;
  std::string header_;
  Layout layout_;                               ///< of the file
  Layout short_;                                ///< of lines that may lack columns; empty: none may
  std::unordered_set<std::string_view> named_;  ///< the same
  std::bitset<256> first_bytes_;                ///< of the same
  std::string note_;
  std::vector<std::string> trained_;  ///< columns of the file that trained first; empty: not known
  std::shared_ptr<SaidOnce> said_;
  std::vector<std::string> of_job_;  ///< columns that slots of the job are made of, sorted
};

/// The columns that a header names.
Result<std::vector<std::string>> CsvHeaderNames(std::string_view header, const DataFeedDesc& desc);

/// Takes the header off a first line, where every file has one; null where none has.
std::string_view (*CsvHeaderOf(const DataFeedDesc& desc))(std::string_view first_line);

}  // namespace millrace
