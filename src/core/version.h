#pragma once

namespace millrace {

/// The project's version, such as "0.1.0", as CMakeLists.txt says it.
const char* MillraceVersion();

}  // namespace millrace
