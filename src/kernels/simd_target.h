#pragma once

/// Compiles the functions between MR_TARGET_BEGIN("avx2,fma") and MR_TARGET_END for processors with these features.
/// Call them only if DetectSimdLevel() allows it. For files with one loop for several levels; each compiler has
/// different pragmas.
#define MR_TARGET_PRAGMA(x) _Pragma(#x)
#ifdef __clang__
#define MR_TARGET_BEGIN(features) \
  MR_TARGET_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define MR_TARGET_END MR_TARGET_PRAGMA(clang attribute pop)
#define MR_TARGET_AVX512 "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"
#else
#define MR_TARGET_BEGIN(features) MR_TARGET_PRAGMA(GCC push_options) MR_TARGET_PRAGMA(GCC target(features))
#define MR_TARGET_END MR_TARGET_PRAGMA(GCC pop_options)
#define MR_TARGET_AVX512 "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512"
#endif
