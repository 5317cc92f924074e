#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// Lines of comma-separated numbers. Outputs read columns in order: an output without LoD reads one column per value,
/// an output with a LoD reads one column of blank-separated values. A first line with anything but numbers is a header;
/// empty lines are skipped. Any other mismatch fails with kBadData, naming file, line and column.
FileFormat CsvFormat();

}  // namespace millrace
