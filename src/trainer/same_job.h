#pragma once

#include <string>
#include <vector>

#include "config/trainer_desc_reader.h"
#include "core/status.h"
#include "ranks/rank_group.h"

namespace millrace {

/// Whether all ranks say the same in `mine`, a text of lines: otherwise kInvalidConfig with the first line that rank 0
/// lacks, and the first that is rank 0's alone. A collective of the ranks.
Status CheckSameText(RankGroup& ranks, const std::string& mine);

/// Whether each of `files` has one size for all ranks that see it: otherwise kBadData with the first that has several,
/// both sizes and their ranks. What has no size here is left out: a name that a command reads, a pipe. A collective of
/// the ranks, which give as many files. Sizes travel where they differ, else a hash of them.
Status CheckSameSizes(RankGroup& ranks, const std::vector<std::string>& files);

/// Whether all ranks were given the same job, and see the same files, of the same sizes. A collective of the ranks.
Status CheckSameJob(RankGroup& ranks, const LoadedConfig& config, const std::string& output_dir);

}  // namespace millrace
