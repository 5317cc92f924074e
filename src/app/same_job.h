#pragma once

#include <string>

#include "config/trainer_desc_reader.h"
#include "core/status.h"
#include "dist/rank_group.h"

namespace millrace {

/// Whether all ranks say the same in `mine`, a text of lines: otherwise kInvalidConfig with the first line that differs
/// from rank 0's. A collective of the ranks.
Status CheckSameText(RankGroup& ranks, const std::string& mine);

/// Whether all ranks were given the same job, and see the same files. A collective of the ranks.
Status CheckSameJob(RankGroup& ranks, const LoadedConfig& config, const std::string& output_dir);

}  // namespace millrace
