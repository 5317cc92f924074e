#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/byte_source.h"

namespace millrace {

enum class Compression : uint8_t { kNone, kGzip, kZstd };

/// Tells by the first bytes (four are enough).
Compression DetectCompression(std::string_view first_bytes);

/// Looks at the first bytes of a file. The file must exist.
Result<Compression> DetectFileCompression(const std::string& path);

/// Unpacks gz (with any number of members) and zstd (any number of frames) as it reads, by the source's first bytes;
/// other bytes pass through. `name` is for messages: "gzip: unexpected end of file NAME", "gzip: NAME: invalid data".
/// Buffers are made once; a Read allocates nothing.
std::unique_ptr<ByteSource> Decompress(std::unique_ptr<ByteSource> packed, std::string name);

}  // namespace millrace
