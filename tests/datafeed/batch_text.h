#pragma once

#include <string>

#include "batch/slot_batch.h"
#include "data_feed.pb.h"

namespace millrace::testing {

/// "a=0,9 b=1.5 d=0.25,1,2": row `row` of a batch, with "ins_id=... content=..." before when the batch has them.
/// Floats as %.9g, which tells any two apart; an empty slot is "a=".
std::string RowText(const SlotBatch& batch, int row);

/// A desc from "a:uint64 label:uint64[1] d:float[3] x:float:unused".
DataFeedDesc DescOf(const std::string& slots);

}  // namespace millrace::testing
