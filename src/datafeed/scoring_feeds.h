#pragma once

#include "core/status.h"
#include "datafeed/data_feed.h"

namespace millrace {

/// Returns `feeds` for scoring rows with the saved model of `desc`: CSV lines without header may lack columns of slots
/// that the schema lacks, and messages assume that the user cannot change the job. Does not fail for a valid desc.
Result<DataFeedFactory> ScoringFeeds(const DataFeedFactory& feeds, const DataFeedDesc& desc);

}  // namespace millrace
