#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "datafeed/column_feed.h"
#include "datafeed/data_feed.h"
#include "datafeed/data_frame.h"

namespace millrace {

/// What a file list calls a frame: "frame:data". No such file is opened.
inline constexpr std::string_view kFrameScheme = "frame";
std::string FileOfFrame(std::string_view name);

/// A factory whose only class, that of `desc`, makes rows of frames in place of files, by the same features: a "file"
/// of FileOfFrame(name) has the rows of the frame of this name. Texts are taken as the class takes them from its files:
/// of CSV without the spaces around them, and `csv.missing` means missing. Frames are shared with what the factory
/// makes. kInvalidConfig for a class without named columns. `plans`, null for new ones, compiles features.
Result<DataFeedFactory> FrameFeeds(const DataFeedFactory& feeds, const DataFeedDesc& desc,
                                   std::vector<std::shared_ptr<const DataFrame>> frames,
                                   std::shared_ptr<const FeaturePlans> plans = nullptr);

}  // namespace millrace
