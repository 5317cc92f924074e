// Cuts lines of CSV in two ways, which must agree (features/csv_by_byte.h). The first byte chooses how lines are
// written, the rest is lines.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "features/csv_by_byte.h"
#include "fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using millrace::Demand;
  if (size < 1) return 0;
  millrace::CsvDialect dialect;
  constexpr char kDelimiters[] = {',', '\t', ';', ' ', '|', '\x80', '\xff', '0'};
  dialect.delimiter = kDelimiters[data[0] % 8];
  dialect.keeps_spaces = (data[0] & 8) != 0 || dialect.delimiter == ' ';
  if ((data[0] & 16) != 0) dialect.missing = {"?", "NA"};
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string difference = millrace::testing::CompareCuts(line, dialect);
    if (!difference.empty()) Demand(false, difference.c_str(), std::string(line));
  }
  return 0;
}
