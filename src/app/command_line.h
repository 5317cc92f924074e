#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace millrace {

/// One heading of --help and the flags below it, in this order, by name; repeated flags too.
struct FlagGroup {
  std::string_view title;
  std::vector<std::string_view> flags;
};

/// What a program says about itself.
struct ProgramInfo {
  std::string_view name;          ///< "trainer"
  std::string_view summary;       ///< one sentence
  std::string_view usage;         ///< lines after "usage:", for example "trainer --trainer_desc=FILE [flags]"
  std::vector<FlagGroup> groups;  ///< the flags that the user is to know; others still work
  /// Flags that may be given several times; each use is kept, in order. They need no DEFINE: "set".
  struct Repeated {
    std::string_view flag;
    std::string_view value_name;  ///< for --help: "PATH=VALUE"
    std::string_view help;
  };
  std::vector<Repeated> repeated;
  std::string_view examples;  ///< lines at the end of --help
};

/// What the command line said beside the gflags variables.
struct CommandLine {
  /// Set when the process should end now: 0 after --help and --version, 3 where standard output did not take them; of
  /// ParseCommandLine 2 after a mistake (already on stderr).
  std::optional<int> exit_code;
  Status status;                       ///< kInvalidConfig with all mistakes
  std::vector<std::string> warnings;   ///< lines to say; ParseCommandLine has said them
  std::vector<std::string> arguments;  ///< what is no flag, after "--" too
  /// Values of the repeated flags, in the order of ProgramInfo::repeated.
  std::vector<std::vector<std::string>> repeated;
};

/// Parses flags into gflags' variables. Flags may stand in --flagfile=FILE, one a line. An unknown flag, a missing or
/// bad value: exit code 2, all of them at once, with the nearest flag's name. Call once, before any thread.
CommandLine ParseCommandLine(const ProgramInfo& program, int argc, char** argv);
/// The same, and the caller says what is wrong.
CommandLine ReadCommandLine(const ProgramInfo& program, int argc, char** argv);

/// kIo when what was printed on standard output did not all get there: a full disk, a reader that is gone, an output
/// that the caller had closed.
Status FlushStandardOutput();
/// The same of a program that goes on without its reader: only what is no pipe is to take all.
Status CheckPrinted();
/// kIo when the caller had closed standard input (0) or output (1), which `what` was to come from or go to.
Status CheckIsOpen(int stream, const std::string& what);
/// kIo for a write to standard output that just failed (errno). Remembers when it was that nobody reads any more.
Status StandardOutputFailed(const std::string& what);

/// What main ends with: says a failure, and returns the exit code of `status`. When nobody reads standard output any
/// more (`... | head`), ends by SIGPIPE without a word, as other programs do; children are to be gone by then.
int EndProgram(std::string_view program, const Status& status);

/// Writes a failure to stderr as the last thing of a process. A report about a configuration stands alone, so that
/// editors find its places; other failures follow the program's name.
void PrintFailure(std::string_view program, const Status& status);

/// The exit code of a process that ends with `status`: 0, 2 (configuration), 3 (data, input), 4 (our bug), 130
/// (interrupted).
int ExitCode(const Status& status);

}  // namespace millrace
