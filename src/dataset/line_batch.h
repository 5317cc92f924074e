#pragma once

#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "core/status.h"
#include "datafeed/multi_slot_options.h"

namespace millrace {

class DataFeedDesc;

/// The schema for parsing lines of input_type 1: every slot, dense or not, holds any number of values. Fails like
/// SlotSchema::Create.
Result<SlotSchema> LineBatchSchema(const DataFeedDesc& desc);

/// Expands `line`, a batch of one row, to the batch it represents: a value of a sparse slot is an example, and a dense
/// slot is cut by its width. Fails with kBadData and the line's position if the slots hold different numbers of
/// examples.
Status ExpandLineBatch(const SlotBatch& line, const std::vector<std::string>& files, SlotBatch* batch);

}  // namespace millrace
