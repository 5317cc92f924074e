#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

/// What the processor's vector unit can do; each level includes those before it.
enum class SimdLevel : uint8_t {
  kBaseline,  ///< what every x86-64 (or other) processor has
  kAvx2,      ///< AVX2 and FMA
  kAvx512,    ///< AVX-512 F, VL, BW, DQ
};

/// The widest level of this processor that the operating system lets programs use. Cheap; thread-safe.
SimdLevel DetectSimdLevel();

/// "baseline", "avx2", "avx512".
std::string_view SimdLevelName(SimdLevel level);

}  // namespace millrace
