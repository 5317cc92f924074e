#pragma once

// g++ says so by a macro, clang by a feature.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MILLRACE_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MILLRACE_SANITIZED
#endif
#endif

namespace millrace {

/// Whether this test program, and what it starts, was built with a sanitizer: it is ten times as slow and stands where
/// the C library's functions for memory are.
#ifdef MILLRACE_SANITIZED
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace millrace
