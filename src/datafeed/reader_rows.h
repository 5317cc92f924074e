#pragma once

#include <string>

#include "core/status.h"
#include "datafeed/data_feed.h"
#include "reader/reader_registry.h"

namespace millrace {

/// The data feed that a format's reader makes: of any format, and slower than one that parses records itself. The
/// outputs of its readers are the slots, used or not, in their order: a dense slot is a tensor of its shape, any other
/// one a list, [-1, 1] of lod_level 1; ids are int64, whose 64 bits are kept, floats are float32. A reader opens its
/// file by itself, so that no command can stand before it, and what it fails at ends reading.
FeedKind FeedOfReader(const FileFormat& format);

/// Lets datasets read every format that `plugin` added to `formats` so, unless they have a feed of its name already.
Status AddFeedsOfFormats(const ReaderRegistry& formats, const std::string& plugin, const std::string& version,
                         DataFeedFactory* feeds);

}  // namespace millrace
