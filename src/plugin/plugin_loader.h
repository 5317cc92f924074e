#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "plugin/plugin.h"

namespace millrace {

/// The tag that plugins of the C++ tier must have been built with to be loaded by this program.
std::string_view CppPluginTag();

/// Loads a shared object and adds what it registers to `into`. It stays loaded until the process ends. A relative path
/// is relative to the working directory; no search path is asked.
///
/// Its tag is read from the file first, so that no code of an unfit one runs. kNotFound when there is no such file.
/// kInvalidConfig, naming the plugin, when it is no plugin, was built for another Millrace, compiler or library (with
/// both tags), needs a symbol that is not there, throws, fails, or registers a name that is taken; `into` is then as it
/// was. One thread at a time.
///
/// Where the constructors of a plugin throw, glibc's loader stays locked by this thread: another one that opens a
/// shared object afterwards waits for ever. A program reports the failure and ends; so should who loads one from
/// Python.
Status LoadPlugin(const std::string& path, Registries* into);

}  // namespace millrace
