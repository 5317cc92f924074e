#pragma once

#include "datafeed/data_feed.h"

namespace millrace {

/// Rows of JPEG pictures, of files or folders as the reader's (reader/jpeg_reader.h): the first slot is the picture,
/// dense floats of the shape [-1, 1 or 3, height, width], and the second, if there is one, its label, one value. The
/// threads that read files read pictures' bytes; those that parse decode them. A picture of another size, one that is
/// cut short, and a file that is no JPEG picture are bad lines that name the file. In a build without libjpeg its maker
/// says so.
FeedKind JpegFeedKind();

}  // namespace millrace
