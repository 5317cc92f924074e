#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/byte_source.h"

namespace millrace {

enum class Compression : uint8_t { kNone, kGzip, kZstd };

/// The command that decompresses a format unknown to Decompress, detected from the first ten bytes: "xz -dc", "bzip2
/// -dc", "lz4 -dc" or "funzip"; empty otherwise.
std::string_view ForeignUnpacker(std::string_view first_bytes);

/// Detects the format from the first bytes (four are enough).
Compression DetectCompression(std::string_view first_bytes);

/// Fails with kBadData for an empty file named .gz or .zst: compressed files are never empty, so it was truncated.
Status CheckPackedHasBytes(std::string_view first_bytes, const std::string& name);

/// The first ten bytes of a file, or fewer if it is shorter. Fails with kNotFound or kIo like OpenForReading.
Result<std::string> ReadFirstBytes(const std::string& path);

/// Decompresses gz (any number of members) and zstd (any number of frames), detected from the first bytes; passes other
/// bytes through. Reading fails with kBadData, with `name` in the message: "NAME: gzip: unexpected end of file".
/// Allocates buffers once; a Read does not allocate.
std::unique_ptr<ByteSource> Decompress(std::unique_ptr<ByteSource> packed, std::string name);

}  // namespace millrace
