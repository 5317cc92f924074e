#include "kernels/racy.h"

#include <cmath>

namespace millrace::racy {

// Tables of files compiled for the instructions of one level.
extern const Kernels kBaselineKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

const Kernels& KernelsOf(SimdLevel level) {
  switch (level) {
    case SimdLevel::kAvx512: return kAvx512Kernels;
    case SimdLevel::kAvx2: return kAvx2Kernels;
    case SimdLevel::kBaseline: break;
  }
  return kBaselineKernels;
}

const Kernels& Best() {
  static const Kernels& best = KernelsOf(DetectSimdLevel());
  return best;
}

AdamStep MakeAdamStep(float lr, float beta1, float beta2, float epsilon, float beta1_power, float beta2_power) {
  const float correction = std::sqrt(1.0F - beta2_power);
  return {lr * correction / (1.0F - beta1_power), beta1, beta2, epsilon * correction};
}

}  // namespace millrace::racy
