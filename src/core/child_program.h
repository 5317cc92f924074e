#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/subprocess.h"

namespace millrace {

/// A program that runs in parallel and writes its messages to a file. It has no input and its own process group, so
/// Ctrl-C at a terminal does not reach it; the parent forwards signals.
///
/// The object's destructor, and the end of this process, kill the whole group. One thread.
class ChildProgram {
 public:
  /// Starts `argv`, appending its output and errors to the file `output`. The guard must outlive it. Fails with
  /// kNotFound if the program is missing, kIo if it or the file cannot be started or opened.
  static Result<ChildProgram> Start(const std::vector<std::string>& argv, const std::string& output, ChildGuard& guard);
  ChildProgram(ChildProgram&& other) noexcept;
  ChildProgram& operator=(ChildProgram&&) = delete;
  ~ChildProgram();

  /// Exit code of a program that somebody else waited for first, for example the system if SIGCHLD is ignored.
  static constexpr int kNotKnown = -1;
  /// The exit code, 128 + the signal that ended it, or kNotKnown; nullopt while it runs. Does not wait.
  std::optional<int> ExitCode();
  /// Sends a signal only to the program, not to its group. No-op after its end.
  void Signal(int signal) const;

 private:
  ChildProgram(pid_t pid, ChildGuard* guard) : pid_(pid), guard_(guard) {}
  /// Kills the rest of its group and reaps it.
  void Reap();

  pid_t pid_;  ///< -1 after it was reaped
  ChildGuard* guard_;
  std::optional<int> exit_code_;
};

}  // namespace millrace
