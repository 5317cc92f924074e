#pragma once

#include <string>

namespace millrace {

/// Monitors the end of the process: if `file` (the system loader's name of plugin `path`) is in the call stack that led
/// to it, names the plugin on standard error. Call it before opening the plugin, whose constructors can already end the
/// process; one thread at a time.
///
/// - exit, quick_exit, and an uncaught exception (in a thread or a destructor) end with exit code 2, because the run
///   was not over.
/// - A fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) ends as before: by the signal, with the core dump or the
///   previous handler. For a fault outside plugins the report lists the loaded ones, since they share our memory.
///
/// A plugin that calls _exit or overflows the stack is not detected.
void ExpectEndFrom(const std::string& path, const std::string& file);

}  // namespace millrace
