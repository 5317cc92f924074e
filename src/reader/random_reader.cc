#include "reader/random_reader.h"

#include <cmath>
#include <utility>

#include "core/hash.h"
#include "core/numbers.h"

namespace millrace {

Result<std::unique_ptr<RandomReader>> RandomReader::Create(float low, float high, uint64_t seed,
                                                           std::vector<TensorSpec> shapes) {
  if (!(low < high)) {
    return InvalidConfig("low " + ShortestNumber(low) + " is not below high " + ShortestNumber(high));
  }
  if (!std::isfinite(high - low)) {
    return InvalidConfig("from low " + ShortestNumber(low) + " to high " + ShortestNumber(high) +
                         " is further than float32 reaches");
  }
  MR_TRY(CheckInstanceSpecs(shapes));
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].dtype == DType::kFloat32 && shapes[i].lod_level == 0) continue;
    return InvalidConfig("output " + std::to_string(i) + " is " + shapes[i].ToString() +
                         "; random values are float32 without LoD");
  }
  return std::unique_ptr<RandomReader>(new RandomReader(low, high, seed, std::move(shapes)));
}

RandomReader::RandomReader(float low, float high, uint64_t seed, std::vector<TensorSpec> shapes)
    : ReaderBase(std::move(shapes)), low_(low), high_(high), seed_(seed), rng_(Mix64(seed, 0)) {}

Result<bool> RandomReader::Produce(std::vector<LoDTensor>* out, const std::stop_token&) {
  out->resize(shapes().size());
  for (size_t i = 0; i < out->size(); ++i) {
    auto* values = static_cast<float*>(ResizeToInstance(shapes()[i], 0, &(*out)[i]));
    const int64_t count = (*out)[i].values.numel();
    for (int64_t k = 0; k < count; ++k) {
      // 24 bits, so rounding never gives 1.
      const float uniform = static_cast<float>(rng_.Next() >> 40) * 0x1p-24F;
      values[k] = low_ + (high_ - low_) * uniform;
    }
  }
  return true;
}

Status RandomReader::Restart() {
  rng_ = Rng(Mix64(seed_, pass()));
  return Status::Ok();
}

}  // namespace millrace
