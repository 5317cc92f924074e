#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MILLRACE_SANITIZED
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
