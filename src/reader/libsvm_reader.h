#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// Lines "LABEL INDEX:VALUE INDEX:VALUE ...", indices ascending from 1; "#" starts a comment. Outputs are the label and
/// either one dense output, whose value i belongs to index i + 1 (0 if missing), or two with a LoD: the indices (int64)
/// and the values. Any mismatch fails with kBadData, naming file, line and token.
FileFormat LibsvmFormat();

}  // namespace millrace
