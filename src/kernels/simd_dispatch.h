#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// What the processor's vector unit can do; each level includes those before it.
enum class SimdLevel : uint8_t {
  kBaseline,  ///< what every x86-64 (or other) processor has
  kAvx2,      ///< AVX2 and FMA
  kAvx512,    ///< AVX-512 F, VL, BW, DQ
};

/// The widest level of this processor that the operating system lets programs use, or that MILLRACE_MAX_CPU_ISA names
/// if that is lower. The environment is read once. Cheap; thread-safe.
SimdLevel DetectSimdLevel();

/// kInvalidConfig if MILLRACE_MAX_CPU_ISA has a value that does not name a level: AVX512_CORE, AVX2 or SSE41 (in any
/// case; the names that ONEDNN_MAX_CPU_ISA has for them). Programs ask at their start; DetectSimdLevel ignores such a
/// value.
Status CheckSimdCap();

/// "baseline", "avx2", "avx512".
std::string_view SimdLevelName(SimdLevel level);

}  // namespace millrace
