#pragma once

#include <stop_token>

#include "config/trainer_desc_reader.h"
#include "core/status.h"
#include "job/environment.h"

namespace millrace {

/// Checks the headers of the files of the evaluation sets, then of the training, for a second at most: that is some
/// ten thousand local files. A file that lacks a column would end the training when its turn comes; here it ends it
/// before the first step. Lines without a header are not looked at, nor are the files of days. Files that a command
/// writes are not, nor those that can be read only once. Of Parquet and Arrow a set's first file is, since Python reads
/// it. The features of `config` need know nothing of the training files yet. kBadData with the mistakes of all headers,
/// each with its place, what the opening fails with, kCancelled.
Status CheckInputHeaders(const LoadedConfig& config, const Environment& environment, const std::stop_token& stop);

}  // namespace millrace
