#include "paths.h"

namespace millrace {

std::string SourceDir() { return MILLRACE_SOURCE_DIR; }
std::string BinDir() { return MILLRACE_BIN_DIR; }
std::string TestPluginDir() { return MILLRACE_TEST_PLUGINS; }

}  // namespace millrace
