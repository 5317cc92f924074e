#pragma once

/// The project's version as plugins see it; CMake refuses to configure when it is not that of CMakeLists.txt.
#define MILLRACE_PLUGIN_VERSION "0.1.0"
