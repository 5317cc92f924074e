#pragma once

#include "core/status.h"
#include "datafeed/bad_lines.h"
#include "datafeed/line_block_queue.h"
#include "dataset/dataset.h"

namespace millrace {

class DataFeedDesc;

/// Checks the numbers of a data_desc that say how lines are read. kInvalidConfig for the first one that is amiss.
Status CheckLineInput(const DataFeedDesc& desc);

/// What a pass met in its files. Rows, and what is counted by the threads that parsed them, are the caller's to add.
PassStats StatsOfFiles(const LineBlockQueue& blocks, const BadLines& bad_lines);

}  // namespace millrace
