#include "core/version.h"

namespace millrace {

const char* MillraceVersion() { return MILLRACE_VERSION; }

}  // namespace millrace
