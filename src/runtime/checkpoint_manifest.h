#pragma once

#include <string>

#include "checkpoint.pb.h"
#include "core/status.h"

namespace millrace {

/// The text of a manifest file: sealed, with the format version it requires.
std::string ManifestText(CheckpointManifest manifest);

/// Fails with kBadData if the file is missing, damaged, of another version, or has impossible numbers.
Result<CheckpointManifest> ReadManifest(const std::string& path);

}  // namespace millrace
