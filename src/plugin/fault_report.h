#pragma once

#include <string>

namespace millrace {

/// From now on the end of the process is looked at: where `file`, as the system's loader calls the plugin `path`, is
/// among the calls that led to it, the plugin is named on standard error. To be called before the plugin is opened, as
/// its constructors may end the process already; one thread at a time.
///
/// - exit, quick_exit, and an exception that nobody catches (of a thread or a destructor) end with exit code 2: the run
///   was not over, whatever the plugin said.
/// - A fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) ends as it would have, by the signal, with the core dump or the
///   handler that was there before. One in code that is no plugin's names those that were loaded, as memory is theirs,
///   too.
///
/// A plugin that calls _exit, or runs out of stack, ends the process unseen.
void ExpectEndFrom(const std::string& path, const std::string& file);

}  // namespace millrace
