#include "datafeed/file_columns.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "data_feed.pb.h"
#include "datafeed/csv_column_feed.h"
#include "datafeed/input_opener.h"
#include "datafeed/json_column_feed.h"

namespace millrace {
namespace {

/// A file's bytes up to, but excluding, `end`, or all; skips the characters in `left_out` at the start. Empty if this
/// is longer than names can be.
Result<std::string> BytesBefore(std::optional<char> end, const DataFeedDesc& desc, const LineCut& cut,
                                const std::string& file, const std::stop_token& stop, std::string_view left_out = "") {
  constexpr size_t kLongest = size_t{1} << 24;
  MR_ASSIGN(const std::unique_ptr<InputOpener> opener, InputOpener::Create(desc, {file}, stop, cut));
  MR_ASSIGN(const OpenedInput input, opener->Open(file));
  std::string bytes;
  std::array<char, 4096> some;
  while (bytes.size() < kLongest) {
    MR_ASSIGN(const size_t count, input.source->Read(some, stop));
    bytes.append(some.data(), count);
    bytes.erase(0, std::min(bytes.find_first_not_of(left_out), bytes.size()));
    const size_t found = end.has_value() ? bytes.find(*end) : std::string::npos;
    if (found != std::string::npos) bytes.resize(found);
    if (found != std::string::npos || count == 0) return bytes;
  }
  return std::string();
}

}  // namespace

bool HasHeader(const DataFeedDesc& desc) {
  return desc.feature_size() > 0 && desc.name() == "csv" && desc.csv().names_size() == 0;
}

Result<FileColumns> ColumnsOfFile(const DataFeedFactory& feeds, const DataFeedDesc& desc, const std::string& file,
                                  const std::stop_token& stop) {
  FileColumns columns;
  const FeedKind* const kind = feeds.Find(desc.name());
  if (kind == nullptr || desc.feature_size() == 0 || !PipeCommandOf(desc).empty()) return columns;
  if (kind->names_command != nullptr) {
    const LineCut cut{.command = kind->names_command()};
    MR_ASSIGN(const std::string bytes, BytesBefore(std::nullopt, desc, cut, file, stop));
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t end = std::min(bytes.find('\0', begin), bytes.size());
      std::vector<std::string>& next = columns.names.size() == columns.types.size() ? columns.names : columns.types;
      next.push_back(bytes.substr(begin, end - begin));
      begin = end + 1;
    }
    return columns;
  }
  if (!HasHeader(desc) && desc.name() != "json") return columns;
  // Blank lines and a byte order mark are not JSON lines, and reading skips them.
  const std::string_view left_out = HasHeader(desc) ? "" : "\xEF\xBB\xBF \t\r\n";
  MR_ASSIGN(const std::string line, BytesBefore('\n', desc, {}, file, stop, left_out));
  MR_ASSIGN(columns.names, HasHeader(desc) ? CsvHeaderNames(CsvHeaderOf(desc)(line), desc) : JsonColumnNames(line));
  return columns;
}

}  // namespace millrace
