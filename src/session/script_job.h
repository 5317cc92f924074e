#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "config/trainer_desc_reader.h"
#include "session/call_context.h"

namespace millrace {

/// Reads a TrainerDesc that a package wrote and checks it like one from a file. `origin` names it in errors. The errors
/// of LoadTrainerDescText.
Result<LoadedConfig> ReadScriptJob(const Environment& environment, const std::string& origin, const std::string& text,
                                   bool needs_model, bool of_ranks);

/// The files of each rank's job, indexed by rank. A collective of several ranks, which are in `call`.
/// CollectiveOrder::Together's errors; the first rank's error if a rank could not read its job.
Result<std::vector<std::vector<std::string>>> FileLists(const CallContext& context, const std::string& call,
                                                        const Result<LoadedConfig>& read);

/// The error for a dataset without files.
Status NoFilesOnAnyRank();

/// Checks that all ranks of a script train the same program with the same settings, and puts the files of all ranks
/// into
/// `*job`, unless it has its rows in memory. A collective of several ranks. kInvalidConfig if the jobs differ or there
/// are no files; the errors of FileLists, FilesOfRanks and CheckSameSizes.
Status CompareJobs(const CallContext& context, bool has_rows, Result<LoadedConfig>* job);

}  // namespace millrace
