#pragma once

#include <cstdint>
#include <string_view>

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): how the library is told to be a header
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace millrace {

/// XXH64 of bytes added in pieces; equals the hash of all bytes at once. One thread; does not allocate.
class XxHash64Stream {
 public:
  explicit XxHash64Stream(uint64_t seed = 0) { XXH64_reset(&state_, seed); }
  void Add(std::string_view bytes) { XXH64_update(&state_, bytes.data(), bytes.size()); }
  /// The hash of the bytes added so far.
  uint64_t Hash() const { return XXH64_digest(&state_); }

 private:
  XXH64_state_t state_;
};

}  // namespace millrace
