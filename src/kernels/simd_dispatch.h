#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Vector instructions of the processor; each level includes the previous ones.
enum class SimdLevel : uint8_t {
  kBaseline,  ///< available on every x86-64 (or other) processor
  kAvx2,      ///< AVX2 and FMA
  kAvx512,    ///< AVX-512 F, VL, BW, DQ
};

/// The widest level supported by processor and operating system, limited by MILLRACE_MAX_CPU_ISA. Reads the environment
/// once. Cheap; thread-safe.
SimdLevel DetectSimdLevel();

/// Fails with kInvalidConfig if MILLRACE_MAX_CPU_ISA is not AVX512_CORE, AVX2 or SSE41 (in any case; the names of
/// ONEDNN_MAX_CPU_ISA). Programs call it at startup; DetectSimdLevel ignores an invalid value.
Status CheckSimdCap();

/// "baseline", "avx2", "avx512".
std::string_view SimdLevelName(SimdLevel level);

}  // namespace millrace
