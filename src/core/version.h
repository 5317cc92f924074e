#pragma once

namespace millrace {

/// The project's version from CMakeLists.txt, such as "0.1.0".
const char* MillraceVersion();

}  // namespace millrace
