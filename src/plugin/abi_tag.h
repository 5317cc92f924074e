#pragma once

#include <google/protobuf/stubs/common.h>

#include <string>

#include "plugin/version.h"

/// Everything that must be equal to pass C++ objects between a program and a plugin: the compiler, the standard
/// library, protobuf, and the version of Millrace's headers.
///
/// The number after C++ is increased with each change of the headers used by plugins, also between versions.
///
///     millrace plugin, C++ 7: g++ 12.2.0, libstdc++ 12 (20220819), protobuf 3021012, millrace 0.1.0
#define MILLRACE_CPP_PLUGIN_TAG                                              \
  "millrace plugin, C++ 7: " MILLRACE_TAG_COMPILER ", " MILLRACE_TAG_LIBRARY \
  ", protobuf " MILLRACE_TAG_TEXT(GOOGLE_PROTOBUF_VERSION) ", millrace " MILLRACE_PLUGIN_VERSION

#define MILLRACE_TAG_TEXT_INNER(x) #x
#define MILLRACE_TAG_TEXT(x) MILLRACE_TAG_TEXT_INNER(x)

#if defined(__clang__)
#define MILLRACE_TAG_COMPILER "clang " __clang_version__
#else
#define MILLRACE_TAG_COMPILER "g++ " __VERSION__
#endif

#if defined(_LIBCPP_VERSION)
#define MILLRACE_TAG_LIBRARY "libc++ " MILLRACE_TAG_TEXT(_LIBCPP_VERSION)
#elif defined(_GLIBCXX_DEBUG)
#define MILLRACE_TAG_LIBRARY MILLRACE_TAG_LIBSTDCXX " with checks"
#elif !_GLIBCXX_USE_CXX11_ABI
#define MILLRACE_TAG_LIBRARY MILLRACE_TAG_LIBSTDCXX " with strings of old"
#else
#define MILLRACE_TAG_LIBRARY MILLRACE_TAG_LIBSTDCXX
#endif
#define MILLRACE_TAG_LIBSTDCXX "libstdc++ " MILLRACE_TAG_TEXT(_GLIBCXX_RELEASE) " (" MILLRACE_TAG_TEXT(__GLIBCXX__) ")"
