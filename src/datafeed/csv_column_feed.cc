#include "datafeed/csv_column_feed.h"

#include <algorithm>
#include <utility>

#include "core/edit_distance.h"
#include "core/utf8.h"
#include "data_feed.pb.h"
#include "datafeed/csv_feed.h"
#include "features/feature_spec.h"
#include "features/text_hash.h"
#include "features/value_text.h"
#include "reader/csv_fields.h"
#include "reader/field_value.h"

namespace millrace {
namespace {

CsvDialect DialectOf(const DataFeedDesc& feed) {
  const CsvDesc& desc = feed.csv();
  CsvDialect dialect;
  dialect.delimiter = desc.delimiter().empty() ? ',' : desc.delimiter()[0];
  dialect.keeps_spaces = desc.keep_spaces();
  dialect.trims_quoted = !desc.keep_spaces() && TextRuleOf(feed) == TextRule::kCanonical;
  dialect.keeps_tabs = TextRuleOf(feed) == TextRule::kByFormat;
  dialect.missing.assign(desc.missing().begin(), desc.missing().end());
  return dialect;
}

std::string_view WholeFirstLine(std::string_view first_line) { return CsvLine(first_line, true); }

Result<std::vector<std::string>> NamesOf(std::string_view header, const CsvDialect& dialect) {
  std::vector<std::string> names;
  CsvMistake mistake;
  if (CutCsvHeader(header, dialect, &names, &mistake)) return names;
  return BadData("the header: expected " + mistake.expected + ", found " + ShownField(mistake.found));
}

constexpr char kDelimiters[] = {';', '\t', '|', ','};

/// The delimiter of which a line that does not split at `delimiter` contains most; 0: none.
char OtherDelimiter(std::string_view line, char delimiter) {
  char most = 0;
  std::ptrdiff_t count = 0;
  for (const char other : kDelimiters) {
    const auto found = std::count(line.begin(), line.end(), other);
    if (other == delimiter || found <= count) continue;
    most = other;
    count = found;
  }
  return most;
}

std::string Named(char delimiter) { return delimiter == '\t' ? "\\t" : std::string(1, delimiter); }

/// Why a first line is in another format than CSV; empty if it may be CSV.
std::string OtherFormat(std::string_view line) {
  if (line.starts_with("{\"") || line.starts_with("{ \"")) return FormatAdvice("JSON lines", "json");
  return ColumnarFormatAdvice(line);
}

/// Advice for unrecognized line ends; empty if they are recognized.
std::string_view OtherLineEnds(std::string_view line) {
  if (line.find('\r') == std::string_view::npos) return "";
  return "a CR in it: lines end with LF or CRLF; where a file ends them with CR alone, convert it: tr '\\r' '\\n'";
}

bool IsBlankLine(std::string_view line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t'; });
}

}  // namespace

std::string_view (*CsvHeaderOf(const DataFeedDesc& desc))(std::string_view first_line) {
  if (desc.feature_size() == 0) return CsvHeader;
  return desc.csv().names_size() > 0 ? nullptr : WholeFirstLine;
}

Result<std::vector<std::string>> CsvHeaderNames(std::string_view header, const DataFeedDesc& desc) {
  return NamesOf(header, DialectOf(desc));
}

Result<std::unique_ptr<DataFeed>> CsvColumnFeed::Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                        const ColumnSetup& setup) {
  std::unique_ptr<CsvColumnFeed> feed(new CsvColumnFeed(schema, setup, desc, DialectOf(desc)));
  feed->trained_.assign(desc.feature_states().column().begin(), desc.feature_states().column().end());
  feed->said_ = setup.said;
  feed->of_job_ = ColumnsOfSlots(desc, [](const FeatureDesc& feature) { return feature.is_used(); });
  std::vector<FeatureMistake> mistakes;
  const std::vector<std::string> names = CsvColumnNames(desc, &mistakes);
  feed->has_headers_ = names.empty();
  if (!names.empty()) MR_TRY(feed->TakeNames(names, "data_desc.csv.names"));
  if (!names.empty() && setup.scores) feed->TakeShortLines();
  return std::unique_ptr<DataFeed>(std::move(feed));
}

CsvColumnFeed::CsvColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc,
                             CsvDialect dialect)
    : ColumnFeed(schema, setup, desc), dialect_(std::move(dialect)), cut_(dialect_) {}

Status CsvColumnFeed::TakeHeader(std::string_view header) {
  note_.clear();
  if (!has_headers_ || (header == header_ && !layout_.places.empty())) return Status::Ok();
  if (const std::string other = OtherFormat(header); !other.empty()) return BadData(other);
  if (header.starts_with("\xFF\xFE") || header.starts_with("\xFE\xFF")) {
    return BadData("this is UTF-16; texts are UTF-8 here: iconv -f UTF-16 -t UTF-8");
  }
  MR_ASSIGN(const std::vector<std::string> names, NamesOf(header, dialect_));
  if (const std::string_view ends = OtherLineEnds(header); !ends.empty() && names != layout_.names) {
    return BadData("the header has " + std::string(ends));
  }
  MR_TRY(CheckDelimiter(header, names));
  MR_TRY(TakeNames(names, "the header"));
  header_ = header;
  NoteChanges(names);
  return Status::Ok();
}

Status CsvColumnFeed::CheckDelimiter(std::string_view header, const std::vector<std::string>& names) const {
  const std::vector<std::string>& columns = plan().columns();
  const auto found_in = [&](const std::vector<std::string>& some) {
    return std::count_if(columns.begin(), columns.end(), [&](const std::string& column) {
      return std::find(some.begin(), some.end(), column) != some.end();
    });
  };
  auto most = found_in(names);
  if (most == static_cast<std::ptrdiff_t>(columns.size())) return Status::Ok();
  char seems = names.size() == 1 ? OtherDelimiter(header, dialect_.delimiter) : 0;
  for (const char other : kDelimiters) {
    CsvDialect dialect = dialect_;
    dialect.delimiter = other;
    const Result<std::vector<std::string>> cut = NamesOf(header, dialect);
    if (!cut.ok() || cut->size() <= names.size() || found_in(*cut) <= most) continue;
    most = found_in(*cut);
    seems = other;
  }
  if (seems == 0) return Status::Ok();
  return BadData("the header has " + std::to_string(names.size()) + (names.size() == 1 ? " column" : " columns") +
                 " where the delimiter is \"" + Named(dialect_.delimiter) + "\"; it seems to be \"" + Named(seems) +
                 "\": " + AdviceOnDelimiter(seems));
}

std::string CsvColumnFeed::AdviceOnDelimiter(char other) const {
  if (!scores()) return "csv { delimiter: \"" + Named(other) + "\" }";
  return "predictor --pipe_command=\"tr '" + Named(other) + "' '" + Named(dialect_.delimiter) + "'\"";
}

void CsvColumnFeed::NoteChanges(const std::vector<std::string>& names) {
  if (trained_.empty() || said_ == nullptr || names == trained_) return;
  const auto missing_in = [](const std::vector<std::string>& some, const std::vector<std::string>& others) {
    std::string text;
    for (const std::string& name : some) {
      if (std::find(others.begin(), others.end(), name) == others.end())
        text += (text.empty() ? "\"" : ", \"") + name + "\"";
    }
    return text;
  };
  const std::string added = missing_in(names, trained_);
  const std::string gone = missing_in(trained_, names);
  std::string note = "its columns are not those of the first file that trained:";
  if (!added.empty()) note += " it has " + added + ", which no feature takes;";
  if (!gone.empty()) note += " it lacks " + gone + ";";
  if (added.empty() && gone.empty()) note += " they stand in another order;";
  note += " columns are found by their names";
  if (said_->IsNew(note)) note_ = std::move(note);
}

Status CsvColumnFeed::TakeNames(const std::vector<std::string>& names, const std::string& of) {
  const std::vector<std::string>& columns = plan().columns();
  std::vector<int> places(names.size(), -1);
  std::string problems;
  size_t absent = 0;
  const auto report = [&problems](const std::string& problem) { problems += (problems.empty() ? "" : "\n") + problem; };
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string& column = columns[i];
    const auto found = std::find(names.begin(), names.end(), column);
    if (found == names.end()) {
      const std::vector<std::string_view> known(names.begin(), names.end());
      const bool parts_rows = plan().times().has_value() && plan().times()->column == static_cast<int>(i);
      report(of + " has no column \"" + column + "\"" + (parts_rows ? ", by which eval.set.since parts rows" : "") +
             DidYouMean(column, known));
      ++absent;
      continue;
    }
    if (std::find(found + 1, names.end(), column) != names.end()) {
      report(of + " names two columns \"" + column + "\": a feature takes the one of this name; rename the other");
    }
    places[static_cast<size_t>(found - names.begin())] = static_cast<int>(i);
  }
  // If all are missing, the first line is probably a row.
  const bool is_none = of == "the header" && absent == columns.size();
  if (!problems.empty())
    return BadData(problems + (!is_none   ? ""
                               : scores() ? "; a header comes before the lines, as in training"
                                          : "; files without a header need csv { names: [...] }"));
  layout_ = {names, std::move(places)};
  named_ = {layout_.names.begin(), layout_.names.end()};
  first_bytes_.reset();
  for (const std::string& name : layout_.names) {
    if (!name.empty()) first_bytes_.set(static_cast<unsigned char>(name[0]));
  }
  return Status::Ok();
}

bool CsvColumnFeed::IsOfJob(const std::string& column) const {
  return std::binary_search(of_job_.begin(), of_job_.end(), column);
}

void CsvColumnFeed::TakeShortLines() {
  Layout layout;
  for (size_t i = 0; i < layout_.names.size(); ++i) {
    if (layout_.places[i] < 0 && IsOfJob(layout_.names[i])) continue;
    layout.names.push_back(layout_.names[i]);
    layout.places.push_back(layout_.places[i]);
  }
  if (layout.names.size() < layout_.names.size()) short_ = std::move(layout);
}

LineResult CsvColumnFeed::Read(std::string_view line) {
  line = CsvLine(line, false);
  if (line.starts_with(kByteOrderMark)) [[unlikely]] {
    // Another file was appended here.
    if (FailHeader(line)) return LineResult::kBad;
    line = CsvLine(line, true);
  }
  const Layout* layout = &layout_;
  bool is_cut = cut_.Cut(line, layout->places, texts(), begins());
  if (is_cut && cut_.count() == short_.places.size()) [[unlikely]] {
    layout = &short_;
    is_cut = cut_.Cut(line, layout->places, texts(), begins());
  }
  if (!is_cut) [[unlikely]] {
    Fail(LineErrorKind::kBadValue, "",
         "expected " + cut_.error().expected + ", found " + ShownField(cut_.error().found) + HintOn(line),
         cut_.error().at + 1);
    return LineResult::kBad;
  }
  if (cut_.count() == 1 && IsBlankLine(line)) [[unlikely]] {
    ++counted().blank_lines;
    return LineResult::kBlank;
  }
  if (const size_t width = layout->places.size(); cut_.count() != width) [[unlikely]] {
    if (cut_.count() < width || !options().ignore_trailing) {
      return FailHeader(line) ? LineResult::kBad : FailWidth(line);
    }
    ++counted().trailing_lines;
  }
  const std::span<std::string_view> values = texts();
  if (!values.empty() && (IsName(values.front()) || IsName(values.back())) && FailHeader(line)) [[unlikely]] {
    return LineResult::kBad;
  }
  return PutRow(line);
}

std::optional<bool> CsvColumnFeed::HeaderAgain(std::string_view line) const {
  const Result<std::vector<std::string>> cut = NamesOf(CsvLine(line, true), dialect_);
  if (!cut.ok()) return std::nullopt;
  const std::vector<std::string>& names = *cut;
  if (names.size() == 1) {
    // A value can equal its column's name; a word known to the job or the model is a value.
    const auto is_word = [&](const FeaturePlan::Feature& feature) {
      return feature.words.Find(names[0], TextHash(names[0])) != WordList::kNone;
    };
    const auto& features = plan().features();
    if (!has_headers_ || names != layout_.names || std::any_of(features.begin(), features.end(), is_word))
      return std::nullopt;
    return true;
  }
  // Statistics read only some of the job's columns, but every reading must classify a header equally.
  const auto found = std::count_if(of_job_.begin(), of_job_.end(), [&](const std::string& column) {
    return std::find(names.begin(), names.end(), column) != names.end();
  });
  const std::vector<std::string>& own = names.size() == short_.names.size() ? short_.names : layout_.names;
  // Half of a row of words can equal names by chance.
  const bool is_header = (found >= 2 && 2 * static_cast<size_t>(found) > of_job_.size()) ||
                         std::is_permutation(names.begin(), names.end(), own.begin(), own.end());
  if (!is_header) return std::nullopt;
  bool is_alike = names.size() == own.size();
  for (size_t i = 0; is_alike && i < own.size(); ++i) is_alike = names[i] == own[i] || !IsOfJob(own[i]);
  return is_alike;
}

bool CsvColumnFeed::FailHeader(std::string_view line) {
  const std::optional<bool> is_alike = HeaderAgain(line);
  if (!is_alike.has_value()) return false;
  const std::string joined = has_headers_ ? ", as of files that were put together" : "";
  const std::string again = has_headers_ ? "the header once more" : "a header, where csv.names says that there is none";
  if (*is_alike) {
    return !Fail(LineErrorKind::kBadValue, "",
                 "expected values, found " + again + joined +
                     (layout_.names.size() > 1 ? "" : "; a file of several columns may have it as a value"),
                 1);
  }
  return !FailForGood(LineErrorKind::kBadValue, "",
                      "expected values, found a header of other columns, or of another order, than " +
                          std::string(has_headers_ ? "the file's first" : "csv.names") + joined +
                          ": the lines behind it would be misread; keep such "
                          "files apart, each with its header",
                      1);
}

std::string CsvColumnFeed::HintOn(std::string_view line) const {
  const std::string other = OtherFormat(line);
  if (!other.empty()) return "; " + other;
  const std::string_view ends = OtherLineEnds(line);
  return ends.empty() ? "" : "; the line has " + std::string(ends);
}

LineResult CsvColumnFeed::FailWidth(std::string_view line) {
  const size_t width = layout_.places.size();
  const std::string without_some =
      short_.names.empty() ? ""
                           : " (or " + std::to_string(short_.names.size()) + " without those of the slots left out)";
  const std::string expected = "expected " + std::to_string(width) + " columns, as the " +
                               (has_headers_ ? "file's header" : "job's csv.names") + " says" + without_some +
                               ", found " + std::to_string(cut_.count());
  if (cut_.count() < width) {
    const char other = cut_.count() == 1 ? OtherDelimiter(line, dialect_.delimiter) : 0;
    const std::string advice =
        other == 0 ? HintOn(line)
                   : "; where values are cut by \"" + Named(other) + "\", say " + AdviceOnDelimiter(other);
    Fail(LineErrorKind::kMissingValues, "", expected + advice, line.size() + 1);
  } else {
    Fail(LineErrorKind::kTrailing, "",
         expected + (scores() ? "" : " (trailing_values: IGNORE takes more)") + HintOn(line), cut_.first_beyond() + 1);
  }
  return LineResult::kBad;
}

}  // namespace millrace
