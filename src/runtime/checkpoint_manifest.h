#pragma once

#include <string>

#include "checkpoint.pb.h"
#include "core/status.h"

namespace millrace {

/// The version that ManifestText writes and ReadManifest reads.
inline constexpr int kManifestVersion = 1;

/// A manifest as its file has it: text format, sealed.
std::string ManifestText(const CheckpointManifest& manifest);

/// Reads it. kBadData for a file that is damaged, of another version, or has numbers that no run has.
Result<CheckpointManifest> ReadManifest(const std::string& path);

}  // namespace millrace
