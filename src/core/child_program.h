#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/subprocess.h"

namespace millrace {

/// A program that runs beside this one and writes what it has to say to a file. It reads nothing, and has a process
/// group of its own, so that Ctrl-C at a terminal does not reach it: whoever started it passes signals on.
///
/// Killed with its group when the object dies, or this process does. One thread.
class ChildProgram {
 public:
  /// Starts `argv`; its output and errors go behind what is in the file `output`. The guard outlives it. kNotFound
  /// where there is no such program, kIo.
  static Result<ChildProgram> Start(const std::vector<std::string>& argv, const std::string& output, ChildGuard& guard);
  ChildProgram(ChildProgram&& other) noexcept;
  ChildProgram& operator=(ChildProgram&&) = delete;
  ~ChildProgram();

  /// The exit code of one for which somebody else waited first, as the system does where SIGCHLD is ignored.
  static constexpr int kNotKnown = -1;
  /// Its exit code, or 128 + the signal that ended it, or kNotKnown; nullopt while it runs. Does not wait.
  std::optional<int> ExitCode();
  /// Sends a signal to the program alone. One that has ended gets none.
  void Signal(int signal) const;

 private:
  ChildProgram(pid_t pid, ChildGuard* guard) : pid_(pid), guard_(guard) {}
  /// Ends what is left of its group, and gives its number back.
  void Reap();

  pid_t pid_;  ///< -1 once it was reaped
  ChildGuard* guard_;
  std::optional<int> exit_code_;
};

}  // namespace millrace
