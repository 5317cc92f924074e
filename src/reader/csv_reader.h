#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// Lines of numbers between commas. The columns go to the outputs in their order: as many as an output without LoD has
/// values, and one, with any number of values between blanks, for one with a LoD. A first line that holds something
/// else than numbers is a header; empty lines count for nothing. Everything else that does not fit is kBadData with
/// file, line and column.
FileFormat CsvFormat();

}  // namespace millrace
