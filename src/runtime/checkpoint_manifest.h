#pragma once

#include <string>

#include "checkpoint.pb.h"
#include "core/status.h"

namespace millrace {

/// A manifest as its file has it: text format, sealed, with the version of the format that it needs.
std::string ManifestText(CheckpointManifest manifest);

/// Reads it. kBadData for a file that is damaged, of another version, or has numbers that no run has.
Result<CheckpointManifest> ReadManifest(const std::string& path);

}  // namespace millrace
