#pragma once

#include "datafeed/data_feed.h"

namespace millrace {

/// Rows of JPEG pictures, from files or folders like the reader's (reader/jpeg_reader.h). The first slot is the
/// picture, dense floats of shape [-1, 1 or 3, height, width]; an optional second slot is its label, one value. Reading
/// threads read bytes, parsing threads decode. A picture of another size, a truncated picture and a non-JPEG file are
/// bad lines that name the file. Without libjpeg, the maker fails.
FeedKind JpegFeedKind();

}  // namespace millrace
