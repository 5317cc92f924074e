#include "kernels/packed_weights.h"

#include <algorithm>
#include <new>

#include "core/no_memory.h"
#include "kernels/row_product.h"

namespace millrace {

const float* PackedWeights::Of(const float* b, int64_t k, int64_t n, bool transpose_b) {
  const std::lock_guard lock(mutex_);
  HugeBuffer& packed = packed_[Key(b, k, n, transpose_b)];
  if (packed.data() == nullptr) {
    const RowProductKernels& kernels = BestRowProduct();
    const int64_t bytes = std::max<int64_t>(kernels.packed_floats(k, n), 1) * static_cast<int64_t>(sizeof(float));
    try {
      packed = HugeBuffer(static_cast<size_t>(bytes));
    } catch (const std::bad_alloc&) {
      throw NoMemory(DType::kUint8, Dims{bytes});
    }
    kernels.pack(b, k, n, transpose_b, reinterpret_cast<float*>(packed.data()));
  }
  return reinterpret_cast<const float*>(packed.data());
}

void PackedWeights::Renew() {
  packed_.clear();
  ++generation_;
}

}  // namespace millrace
