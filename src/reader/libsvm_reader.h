#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// Lines "LABEL INDEX:VALUE INDEX:VALUE ...", indices from 1 on, growing; "#" begins a comment. Outputs are the label
/// and either one dense output, whose value i is that of index i + 1 (0 where the line has none), or two with a LoD:
/// the indices (int64) and the values. Whatever does not fit is kBadData with file, line and token.
FileFormat LibsvmFormat();

}  // namespace millrace
