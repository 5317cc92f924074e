#pragma once

#include <string>

#include "core/status.h"

namespace millrace {

/// Loads a plugin beside what Millrace has; returns what it brings, a line each, as `inspect plugin` prints it:
///
///     loss of the class "Esmm": clicks, and purchases over all shows
///
/// Errors are those of LoadPlugin, among them what a plugin returns that is a test (plugin/test_kit.h).
Result<std::string> ListPlugin(const std::string& path);

}  // namespace millrace
