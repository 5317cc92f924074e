#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/rng.h"
#include "reader/reader.h"

namespace millrace {

/// Generates float32 tensors of uniform values in [low, high), without end.
///
/// The values depend on the seed and the number of restarts.
class RandomReader final : public ReaderBase {
 public:
  /// Fails with kInvalidConfig unless low < high, high - low is finite, and every output is float32 of known sizes
  /// (a first -1 is 1), without LoD.
  static Result<std::unique_ptr<RandomReader>> Create(float low, float high, uint64_t seed,
                                                      std::vector<TensorSpec> shapes);

 private:
  RandomReader(float low, float high, uint64_t seed, std::vector<TensorSpec> shapes);
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;

  const float low_;
  const float high_;
  const uint64_t seed_;
  Rng rng_;
};

}  // namespace millrace
