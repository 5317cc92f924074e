#pragma once

#include <string>

namespace millrace {

/// The path of one of tests/plugin/plugins.
inline std::string TestPlugin(const std::string& name) {
  return std::string(MILLRACE_TEST_PLUGINS) + "/" + name + ".so";
}

}  // namespace millrace
