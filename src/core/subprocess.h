#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/byte_source.h"
#include "core/file.h"

namespace millrace {

/// What a process is started with: our environment, and `entry` in place of a guard's mark. Points into both.
std::vector<char*> EnvironmentWith(const std::string& entry);

/// Kills the process groups of commands when this process dies, even by SIGKILL.
///
/// A small shell in a group of its own reads the other end of a pipe, on which groups are announced and withdrawn;
/// when the pipe closes, because this object or this process ended, it kills what is left. (PR_SET_PDEATHSIG would
/// reach only the shell of a command, not what the shell started, and fires when the starting thread ends.) What left
/// its group, as daemons do, is known by mark() in its environment, and killed as well.
/// Thread-safe. Must outlive the commands that were started with it.
class ChildGuard {
 public:
  static Result<std::unique_ptr<ChildGuard>> Create();
  ~ChildGuard();

  /// "MILLRACE_GUARD=..." for the environment of every command.
  const std::string& mark() const { return mark_; }

  void Announce(pid_t group);
  void Withdraw(pid_t group);

 private:
  ChildGuard(std::string mark, pid_t pid, FileDescriptor pipe)
      : mark_(std::move(mark)), pid_(pid), pipe_(std::move(pipe)) {}
  std::string mark_;
  pid_t pid_;
  FileDescriptor pipe_;
};

/// What a command is and how it is fed.
struct SubprocessOptions {
  /// Program (looked up in PATH) and arguments.
  std::vector<std::string> argv;
  /// What messages and the echo of its stderr begin with: the file's name.
  std::string label;
  /// Its stdin: a file's descriptor, or `input`, or neither: /dev/null.
  FileDescriptor stdin_file;
  /// Bytes that a thread writes to its stdin. A failure of this source is the failure of the command.
  std::unique_ptr<ByteSource> input;
  /// The command is killed when it writes nothing for so long while somebody waits for it; 0: never.
  std::chrono::milliseconds silence_timeout{0};
  /// A program of ours, which may end with kExitBadData or kExitInvalidConfig: what it wrote to its stderr is then the
  /// failure. It is passed on behind a good end alone.
  bool explains_failure = false;
  /// While what it is stopped, in a message: one that only stands for a file is none of the user's commands.
  std::string activity = "a command ran";
};

/// What such a program ends with (EX_DATAERR and EX_CONFIG of sysexits.h): Status codes of these names.
constexpr int kExitBadData = 65;
constexpr int kExitInvalidConfig = 78;

/// The argv that runs a shell command: bash --norc -o pipefail -c COMMAND, with `arguments` as $1, $2, ...
std::vector<std::string> ShellArgv(const std::string& command, const std::vector<std::string>& arguments = {});

/// Runs a command and delivers what it writes to stdout.
///
/// The command has a process group of its own; the whole group is killed when the object dies, which takes less than
/// a second. Lines of its stderr go to ours behind "LABEL: ", and the last ones into the failure. Read's failures:
/// "command exited with status 3", "command not found (status 127)", "command killed by signal 9 (Killed)",
/// "command wrote nothing for 5 seconds and was killed". One thread at a time.
Result<std::unique_ptr<ByteSource>> StartSubprocess(SubprocessOptions options, ChildGuard& guard);

}  // namespace millrace
