#pragma once

#include "core/status.h"
#include "datafeed/data_feed.h"

namespace millrace {

/// The feeds of `feeds` for rows that are scored with a saved model, which `desc` is of: lines of CSV without header
/// may lack the columns of slots that the schema lacks, and advice is for users who cannot change the job.
Result<DataFeedFactory> ScoringFeeds(const DataFeedFactory& feeds, const DataFeedDesc& desc);

}  // namespace millrace
