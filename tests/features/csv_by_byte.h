#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "features/csv_cutter.h"

namespace millrace::testing {

/// What CsvCutter makes of a line, written the plain way: byte by byte. False: its quotes are wrong.
bool CutByByte(std::string_view line, const CsvDialect& dialect, std::vector<std::string>* values);

/// Cuts a line in both ways; what differs, or nothing.
std::string CompareCuts(std::string_view line, const CsvDialect& dialect);

}  // namespace millrace::testing
