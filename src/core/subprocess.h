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

/// The environment of a new process: ours, with `entry` replacing a guard's mark. Points into both.
std::vector<char*> EnvironmentWith(const std::string& entry);

/// Kills the process groups of commands when this process dies, even by SIGKILL.
///
/// A small shell in its own group reads the other end of a pipe, through which groups are announced and withdrawn. When
/// the pipe closes, because this object or this process ended, it kills the remaining groups. (PR_SET_PDEATHSIG would
/// reach only a command's shell, not its children, and fires when the starting thread ends.) It also kills processes
/// that left their group, like daemons, recognized by mark() in their environment. Thread-safe. Must outlive the
/// commands started with it.
class ChildGuard {
 public:
  /// Fails with kIo if the shell or its pipe cannot be created.
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

/// A command and its input.
struct SubprocessOptions {
  /// Program (looked up in PATH) and arguments.
  std::vector<std::string> argv;
  /// Prefix of messages and of its forwarded stderr: the file name.
  std::string label;
  /// Its stdin: a file's descriptor, or `input`; if neither is set, /dev/null.
  FileDescriptor stdin_file;
  /// A thread writes these bytes to its stdin. A failure of this source becomes the command's failure.
  std::unique_ptr<ByteSource> input;
  /// Kills the command if it writes nothing for this long while a reader waits; 0: never.
  std::chrono::milliseconds silence_timeout{0};
  /// A program of ours that can end with kExitBadData or kExitInvalidConfig: its stderr is then the failure's message.
  /// Its stderr is forwarded only on success.
  bool explains_failure = false;
  /// What was stopped, in messages; a command that only represents a file is not the user's.
  std::string activity = "a command ran";
};

/// Exit codes of such a program (EX_DATAERR and EX_CONFIG of sysexits.h), for the Status codes of these names.
constexpr int kExitBadData = 65;
constexpr int kExitInvalidConfig = 78;

/// The argv of a shell command: bash --norc -o pipefail -c COMMAND, with `arguments` as $1, $2, ...
std::vector<std::string> ShellArgv(const std::string& command, const std::vector<std::string>& arguments = {});

/// Runs a command and delivers its stdout.
///
/// The command has its own process group; the destructor kills the whole group within a second. Lines of its stderr are
/// forwarded to ours with the prefix "LABEL: ", and the last ones are part of a failure. Fails with kNotFound for a
/// missing program, kIo if it cannot start. Read fails with kIo: "command exited with status 3", "command not found
/// (status 127)", "command killed by signal 9 (Killed)"; with kUnavailable: "command wrote nothing for 5 seconds and
/// was killed". One thread at a time.
Result<std::unique_ptr<ByteSource>> StartSubprocess(SubprocessOptions options, ChildGuard& guard);

}  // namespace millrace
