#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "core/huge_buffer.h"

namespace millrace {

/// Matrices of a model's parameters as RowProductKernels::run reads them, each packed once for all frames that multiply
/// by it. Takes as much memory as these matrices.
///
/// The owner promises that the parameters change, and Renew is called, only while no frame runs. Thread-safe otherwise.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  /// B [k, n] at `b`, or with `transpose_b` [n, k], packed. Valid until Renew. Takes a lock, and the first caller
  /// packs: callers keep what they got while generation() stays. Throws NoMemory.
  const float* Of(const float* b, int64_t k, int64_t n, bool transpose_b);
  /// Parameters may have changed: they are packed again when they are asked for.
  void Renew();
  /// How often Renew was called.
  uint64_t generation() const { return generation_; }

 private:
  using Key = std::tuple<const float*, int64_t, int64_t, bool>;

  std::mutex mutex_;
  std::map<Key, HugeBuffer> packed_;
  uint64_t generation_ = 0;
};

}  // namespace millrace
