#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "core/huge_buffer.h"

namespace millrace {

/// Parameter matrices in the layout of RowProductKernels::run, each packed once for all frames that use it. Needs as
/// much memory as these matrices.
///
/// The owner must change parameters and call Renew only while no frame runs. Thread-safe otherwise.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  /// B [k, n] at `b`, or [n, k] with `transpose_b`, packed. Valid until Renew. Locks, and the first caller packs, so
  /// callers keep the result while generation() is unchanged. Throws NoMemory.
  const float* Of(const float* b, int64_t k, int64_t n, bool transpose_b);
  /// Call it after parameters may have changed; they are packed again on demand.
  void Renew();
  /// Number of Renew calls.
  uint64_t generation() const { return generation_; }

 private:
  using Key = std::tuple<const float*, int64_t, int64_t, bool>;

  std::mutex mutex_;
  std::map<Key, HugeBuffer> packed_;
  uint64_t generation_ = 0;
};

}  // namespace millrace
