#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "trainer_desc.pb.h"

namespace millrace {

/// The first rows of a click log (clickgen, seed 1, ids 1 to 1000 in the largest slot) as MultiSlot text.
std::string ClickText(int rows);

/// The same as the pipe_command of a job of configs/ gives it.
std::string PipedClickText(int rows, const TrainerDesc& job);

/// Cuts MultiSlot text into batches of `batch_size` rows, the last one of what remains. `schema` must outlive them. A
/// plain parser of its own, so that tests of models do not lean on the data feed.
std::vector<std::unique_ptr<SlotBatch>> ParseBatches(const SlotSchema& schema, const std::string& text, int batch_size);

}  // namespace millrace
