#include "kernels/simd_dispatch.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace millrace {
namespace {

constexpr const char* kCap = "MILLRACE_MAX_CPU_ISA";
constexpr std::array<std::pair<std::string_view, SimdLevel>, 3> kCaps = {
    {{"AVX512_CORE", SimdLevel::kAvx512}, {"AVX2", SimdLevel::kAvx2}, {"SSE41", SimdLevel::kBaseline}}};

/// Empty if not set in the environment.
std::string CapText() {
  const char* const text = std::getenv(kCap);  // NOLINT(concurrency-mt-unsafe)
  std::string upper = text == nullptr ? "" : text;
  for (char& letter : upper) letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  return upper;
}

std::optional<SimdLevel> FindCap(std::string_view text) {
  for (const auto& [name, level] : kCaps) {
    if (name == text) return level;
  }
  return std::nullopt;
}

SimdLevel OfProcessor() {
#if defined(__x86_64__)
  // These also check operating system support (XCR0).
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) {
    return SimdLevel::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return SimdLevel::kAvx2;
#endif
  return SimdLevel::kBaseline;
}

}  // namespace

SimdLevel DetectSimdLevel() {
  static const SimdLevel level = std::min(OfProcessor(), FindCap(CapText()).value_or(SimdLevel::kAvx512));
  return level;
}

Status CheckSimdCap() {
  const std::string text = CapText();
  if (text.empty() || FindCap(text).has_value()) return Status::Ok();
  std::string names;
  for (const auto& [name, level] : kCaps) names += (names.empty() ? "" : ", ") + std::string(name);
  return InvalidConfig(std::string(kCap) + "=" + text + " is not an instruction set: set one of " + names);
}

std::string_view SimdLevelName(SimdLevel level) {
  switch (level) {
    case SimdLevel::kBaseline: return "baseline";
    case SimdLevel::kAvx2: return "avx2";
    case SimdLevel::kAvx512: return "avx512";
  }
  return "unknown";
}

}  // namespace millrace
