#pragma once

#include <cstdint>

#include "datafeed/row_layout.h"

namespace millrace {

/// Decodes a row of a PackedRows into a sink (ColumnSink, RowSink), as a parser would fill it from the line. The layout
/// must be the one that the row was encoded with; PackedRows::kPadding bytes behind the row are readable. Allocates
/// only what the sink does.
template <class Sink>
void DecodeRow(const RowLayout& layout, const uint8_t* row, Sink& sink);

}  // namespace millrace
