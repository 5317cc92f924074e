#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/byte_source.h"

namespace millrace {

enum class Compression : uint8_t { kNone, kGzip, kZstd };

/// The command that unpacks what is packed in a way that Decompress does not know, told by its first ten bytes: "xz
/// -dc", "bzip2 -dc", "lz4 -dc" or "funzip"; empty for anything else.
std::string_view ForeignUnpacker(std::string_view first_bytes);

/// Tells by the first bytes (four are enough).
Compression DetectCompression(std::string_view first_bytes);

/// kBadData for a file named .gz or .zst that has no byte: what is packed has some, however empty, so it was cut short.
Status CheckPackedHasBytes(std::string_view first_bytes, const std::string& name);

/// The first ten bytes of a file, or as many as it has. kNotFound, kIo.
Result<std::string> ReadFirstBytes(const std::string& path);

/// Unpacks gz (with any number of members) and zstd (any number of frames) as it reads, by the source's first bytes;
/// other bytes pass through. `name` is for messages: "NAME: gzip: unexpected end of file".
/// Buffers are made once; a Read allocates nothing.
std::unique_ptr<ByteSource> Decompress(std::unique_ptr<ByteSource> packed, std::string name);

}  // namespace millrace
