#pragma once

#include <cstdio>
#include <stop_token>
#include <string>

#include "config/trainer_desc_reader.h"
#include "core/status.h"
#include "job/environment.h"
#include "ranks/rank_group.h"

namespace millrace {

/// From where the features of a job know of the training files.
struct FeaturePreparation {
  RankGroup& ranks;               ///< of the job: preparing is a collective
  std::string resume = "never";   ///< "auto", or a checkpoint's folder: what its run knew, as trained
  std::string output_dir = {};    ///< of "auto"
  bool reads_again = false;       ///< rows are read again after the statistics: files whose rows come once are refused
  std::FILE* terminal = nullptr;  ///< for words about it; null: none
};

/// Completes `config->desc->data_desc().feature_states`, before the job is compiled: from the checkpoint that the run
/// goes on from, or by one reading of the training files (of an incremental job those of its first pass), which is told
/// on the terminal. Does nothing for a job whose features lack nothing. Ranks read the files together.
///
/// kInvalidConfig for a job that infers and has no checkpoint to know it from; the errors of TakeStatistics;
/// kCancelled.
Status PrepareFeatures(const FeaturePreparation& how, const Environment& environment, std::stop_token stop,
                       LoadedConfig* config);

}  // namespace millrace
