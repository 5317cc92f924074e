#pragma once

#include <stop_token>

#include "config/trainer_desc_reader.h"
#include "core/status.h"
#include "trainer/environment.h"

namespace millrace {

/// Checks the headers of the evaluation sets' files, for a second at most. A set that lacks a column would end the
/// training at its first evaluation; here it ends it before the first step. Lines without a header are not looked at.
/// Files that a command writes are not, nor those that can be read only once. Of Parquet and Arrow a set's first file
/// is, since Python reads it. The features of `config` need know nothing of the training files yet. kBadData with the
/// header's place, what the opening fails with, kCancelled.
Status CheckEvaluationHeaders(const LoadedConfig& config, const Environment& environment, const std::stop_token& stop);

}  // namespace millrace
