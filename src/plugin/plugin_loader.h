#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "plugin/plugin.h"

namespace millrace {

/// The tag required in plugins of the C++ tier to be loaded by this program.
std::string_view CppPluginTag();

/// Loads a shared object and adds its registrations to `into`. It stays loaded until the process ends. Relative paths
/// are relative to the working directory; no search path is used.
///
/// The tag is read from the file first, so no code of an incompatible plugin runs. Fails with kNotFound if the file is
/// missing, kIo if it cannot be read, kBadData if it is not a shared object for this machine, kInvalidConfig if it is
/// not a plugin, was built for another Millrace, compiler or library (with both tags), needs a missing symbol, throws,
/// fails, or registers a taken name; messages name the plugin. After a failure `into` is unchanged. One thread at a
/// time.
///
/// If a plugin's constructors throw, this thread keeps glibc's loader lock, and any other thread that opens a shared
/// object blocks forever. Programs report the failure and end; Python callers should do the same.
Status LoadPlugin(const std::string& path, Registries* into);

}  // namespace millrace
