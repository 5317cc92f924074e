#pragma once

#include <string>

namespace millrace {

/// Where this build's checkout, its programs and its test plugins lie.
std::string SourceDir();
std::string BinDir();
std::string TestPluginDir();

}  // namespace millrace
