#pragma once

#include <string>

#include "paths.h"

namespace millrace {

/// The path of one of tests/plugin/plugins.
inline std::string TestPlugin(const std::string& name) { return TestPluginDir() + "/" + name + ".so"; }

}  // namespace millrace
