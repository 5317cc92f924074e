#pragma once

#include <string>

#include "core/status.h"
#include "datafeed/data_feed.h"
#include "reader/reader_registry.h"

namespace millrace {

/// A data feed around the reader of any format; slower than a feed that parses records itself. Reader outputs are the
/// slots, used or not, in order: a dense slot is a tensor of its shape, other slots are lists, [-1, 1] with lod_level
/// 1. Ids are int64 with all 64 bits kept; floats are float32. A reader opens its file itself, so no command can
/// precede it, and its failures end reading.
FeedKind FeedOfReader(const FileFormat& format);

/// Adds such a feed for every format of `plugin` in `formats` whose name has no feed yet. Fails with kAlreadyExists if
/// a name is taken meanwhile.
Status AddFeedsOfFormats(const ReaderRegistry& formats, const std::string& plugin, const std::string& version,
                         DataFeedFactory* feeds);

}  // namespace millrace
