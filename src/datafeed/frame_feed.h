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

/// Scheme of a frame in a file list: "frame:data". No such file is opened.
inline constexpr std::string_view kFrameScheme = "frame";
std::string FileOfFrame(std::string_view name);

/// A factory whose only class, that of `desc`, makes rows from frames instead of files, with the same features. A
/// "file" FileOfFrame(name) contains the rows of the frame with that name. Strings are treated as the class treats
/// those of its files, for example without surrounding spaces and with `csv.missing` for CSV. The factory shares the
/// frames. `plans` compiles features; null: new plans. Fails with kInvalidConfig for a class without named columns.
Result<DataFeedFactory> FrameFeeds(const DataFeedFactory& feeds, const DataFeedDesc& desc,
                                   std::vector<std::shared_ptr<const DataFrame>> frames,
                                   std::shared_ptr<const FeaturePlans> plans = nullptr);

}  // namespace millrace
