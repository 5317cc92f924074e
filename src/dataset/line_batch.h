#pragma once

#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "core/status.h"
#include "datafeed/multi_slot_options.h"

namespace millrace {

class DataFeedDesc;

/// The schema that lines of input_type 1 are read with: a slot, dense or not, holds any number of values.
Result<SlotSchema> LineBatchSchema(const DataFeedDesc& desc);

/// Makes a batch of a line that is one (`line` has one row): a sparse slot's values are an example each, and a dense
/// slot's are cut by its width. kBadData, with the line's place, when slots do not hold equally many examples.
Status ExpandLineBatch(const SlotBatch& line, const std::vector<std::string>& files, SlotBatch* batch);

}  // namespace millrace
