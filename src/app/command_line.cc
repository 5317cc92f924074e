#include "app/command_line.h"

#include <execinfo.h>
#include <fcntl.h>
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <new>
#include <system_error>

#include "app/help_text.h"
#include "core/edit_distance.h"
#include "core/harmless_text.h"
#include "core/shortened.h"
#include "core/terminal.h"
#include "core/words.h"

namespace millrace {
namespace {

/// One argument with the place it came from, for messages.
struct Argument {
  std::string text;
  std::string where;  ///< empty, or "flags.txt:3: "
};

std::string Trimmed(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

class Parser {
 public:
  explicit Parser(const ProgramInfo& program) : program_(program) {
    gflags::GetAllFlags(&flags_);
    for (const auto& flag : flags_) names_.push_back(flag.name);
    for (const auto& repeated : program.repeated) names_.push_back(repeated.flag);
    result_.repeated.resize(program.repeated.size());
  }

  CommandLine Parse(int argc, char** argv) {
    std::vector<Argument> arguments;
    for (int i = 1; i < argc; ++i) arguments.push_back({argv[i], ""});
    Read(arguments, 0);
    if (!errors_.empty()) {
      std::string text;
      for (const std::string& error : errors_) {
        text += (text.empty() ? "" : std::string(program_.name) + ": ") + error + "\n";
      }
      result_.status = InvalidConfig(text + "Run \"" + std::string(program_.name) + " --help\" for the flags.");
    } else if (help_ || version_) {
      PrintOut(help_ ? HelpText(program_) : VersionText(program_.name));
      result_.exit_code = EndProgram(program_.name, FlushStandardOutput());
    }
    return std::move(result_);
  }

 private:
  void Error(const Argument& argument, const std::string& message) {
    errors_.push_back(argument.where + Shortened(message, 2000));
  }

  void Read(const std::vector<Argument>& arguments, int depth) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& argument = arguments[i];
      const std::string& text = argument.text;
      if (text == "--") {
        for (++i; i < arguments.size(); ++i) result_.arguments.push_back(arguments[i].text);
        return;
      }
      if (text.size() < 2 || text[0] != '-') {
        result_.arguments.push_back(text);
        continue;
      }
      const size_t start = text[1] == '-' ? 2 : 1;
      const size_t equals = text.find('=', start);
      std::string name = text.substr(start, equals == std::string::npos ? equals : equals - start);
      std::replace(name.begin(), name.end(), '-', '_');
      std::optional<std::string> value;
      if (equals != std::string::npos) value = text.substr(equals + 1);

      if (name == "help" || name == "h") {
        help_ = true;
        continue;
      }
      if (name == "version") {
        version_ = true;
        continue;
      }
      const gflags::CommandLineFlagInfo* flag = FindFlag(name);
      if (flag != nullptr && flag->type == "bool") {
        Set(argument, name, value.value_or("true"));
        continue;
      }
      if (flag == nullptr && name.starts_with("no") && !value) {
        const gflags::CommandLineFlagInfo* negated = FindFlag(name.substr(2));
        if (negated != nullptr && negated->type == "bool") {
          Set(argument, negated->name, "false");
          continue;
        }
      }
      const std::optional<size_t> repeated = FindRepeated(name);
      if (flag == nullptr && !repeated) {
        Error(argument, "unknown flag --" + name + Suggest(name));
        continue;
      }
      if (!value) {
        if (i + 1 == arguments.size() || IsFlag(arguments[i + 1].text)) {
          Error(argument, "--" + name + " needs a value: --" + name + "=…" + MeaningOf(name));
          continue;
        }
        value = arguments[++i].text;
      }
      if (repeated) {
        result_.repeated[*repeated].push_back(*value);
      } else if (name == "flagfile") {
        ReadFlagFile(argument, *value, depth);
      } else if (name == "fromenv") {
        SetFromEnvironment(argument, *value);
      } else {
        Set(argument, name, *value);
      }
    }
  }

  /// Whether an argument is one of our flags, and not the value of the one before it.
  bool IsFlag(const std::string& text) const {
    if (!text.starts_with("--")) return false;
    std::string name = text.substr(2, text.find('=') == std::string::npos ? text.npos : text.find('=') - 2);
    std::replace(name.begin(), name.end(), '-', '_');
    return FindFlag(name) != nullptr || FindRepeated(name).has_value();
  }

  /// " (FILE: the job)", as --help says it; empty where it says nothing.
  std::string MeaningOf(const std::string& name) const {
    const gflags::CommandLineFlagInfo* flag = FindFlag(name);
    return flag == nullptr || flag->description.empty() ? "" : " (" + flag->description + ")";
  }

  void ReadFlagFile(const Argument& argument, const std::string& path, int depth) {
    constexpr int kDeepest = 10;
    std::ifstream file(path);
    if (!file) return Error(argument, "--flagfile: cannot read \"" + path + "\"");
    if (depth == kDeepest)
      return Error(argument, "--flagfile: \"" + path + "\": flag files name each other in a circle");
    std::vector<Argument> arguments;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      line = Trimmed(line);
      if (line.empty() || line[0] == '#') continue;
      Argument read{line, path + ":" + std::to_string(number) + ": "};
      if (line[0] != '-') {
        Error(read, "expected a flag (--name=value), not \"" + line + "\"");
        continue;
      }
      arguments.push_back(std::move(read));
    }
    Read(arguments, depth + 1);
  }

  void SetFromEnvironment(const Argument& argument, const std::string& names) {
    for (size_t start = 0; start <= names.size();) {
      const size_t comma = std::min(names.find(',', start), names.size());
      const std::string name = names.substr(start, comma - start);
      start = comma + 1;
      const char* value = std::getenv(("FLAGS_" + name).c_str());
      if (FindFlag(name) == nullptr) {
        Error(argument, "--fromenv: unknown flag \"" + name + "\"" + Suggest(name));
      } else if (value == nullptr) {
        Error(argument, "--fromenv: the variable FLAGS_" + name + " is not set");
      } else {
        Set(argument, name, value);
      }
    }
  }

  void Set(const Argument& argument, const std::string& name, const std::string& value) {
    // A flag of the command line may replace one of a file, as it does one of the environment.
    if (argument.where.empty()) {
      std::string& earlier = given_.try_emplace(name, value).first->second;
      if (earlier != value) {
        result_.warnings.push_back("warning: --" + name + " is given twice, and the last one counts: " +
                                   Harmless(Shortened(value, 200)) + "\n");
      }
      earlier = value;
    }
    if (!gflags::SetCommandLineOption(name.c_str(), value.c_str()).empty()) return;
    Error(argument, "--" + name + ": expected " + TypeInWords(FindFlag(name)->type) + ", not \"" + value + "\"");
  }

  static std::string TypeInWords(const std::string& type) {
    if (type == "bool") return "true or false";
    if (type == "double") return "a number";
    if (type == "string") return "an allowed text";
    return type.starts_with("u") ? "a whole number from 0 on" : "a whole number";
  }

  /// Suggests among the flags that --help lists first: "--log" is rather --log_dir of ours than one of glog's.
  std::string Suggest(const std::string& name) const {
    std::vector<std::string_view> ours;
    for (const FlagGroup& group : program_.groups) ours.insert(ours.end(), group.flags.begin(), group.flags.end());
    for (const auto& repeated : program_.repeated) ours.push_back(repeated.flag);
    std::string_view nearest = NearestName(name, ours);
    if (nearest.empty()) nearest = NearestName(name, names_);
    return nearest.empty() ? "" : "; did you mean --" + std::string(nearest) + "?";
  }

  const gflags::CommandLineFlagInfo* FindFlag(std::string_view name) const {
    const auto found = std::find_if(flags_.begin(), flags_.end(), [&](const auto& flag) { return flag.name == name; });
    return found == flags_.end() ? nullptr : &*found;
  }

  std::optional<size_t> FindRepeated(std::string_view name) const {
    for (size_t i = 0; i < program_.repeated.size(); ++i) {
      if (program_.repeated[i].flag == name) return i;
    }
    return std::nullopt;
  }

  const ProgramInfo& program_;
  std::vector<gflags::CommandLineFlagInfo> flags_;
  std::vector<std::string_view> names_;
  CommandLine result_;
  std::vector<std::string> errors_;
  std::map<std::string, std::string> given_;  ///< on the command line itself
  bool help_ = false;
  bool version_ = false;
};

bool was_closed[3] = {};        ///< standard streams; written before threads start
bool reader_is_gone = false;    ///< of standard output; the thread that writes there alone
std::string_view program_name;  ///< for EndWithReason; written before threads start

/// Ends the program for an exception that nothing caught, in whichever thread: with a line and an exit code that says
/// whose fault it is, not with a signal. Allocates nothing: there may be nothing left to allocate.
[[noreturn]] void EndWithReason() {
  const auto write = [](std::string_view text) {
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  };
  int code = 4;
  write(program_name);
  try {
    const std::exception_ptr thrown = std::current_exception();
    if (thrown) std::rethrow_exception(thrown);
    write(": internal error: terminated");
  } catch (const std::bad_alloc&) {
    code = 3;
    write(": out of memory: smaller batches, tables or layers, fewer threads, or a larger limit (ulimit -v) may help");
  } catch (const std::filesystem::filesystem_error& error) {
    code = 3;
    write(": ");
    write(error.what());
  } catch (const std::system_error& error) {
    // std::thread says so when it cannot start; nothing else of ours throws one.
    code = 3;
    if (error.code() == std::errc::resource_unavailable_try_again) {
      write(": the system has no room for another thread (ulimit -u, ulimit -v): ");
    } else {
      write(": the system refused: ");
    }
    write(error.what());
  } catch (const std::exception& error) {
    write(": internal error: ");
    write(error.what());
  } catch (...) {
    write(": internal error: an exception of unknown type");
  }
  write("\n");
  ::_exit(code);
}

/// A CHECK that failed, and has said so, is our bug: shows how it came there, and ends with that exit code.
__attribute__((noreturn)) void EndAfterFailedCheck() {  // as glog has its type
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  ::_exit(4);
}

/// What stands before a logged line: users are not told a thread's number and the place in our source but for our bugs,
/// and where they asked for more by --v.
void WriteLogPrefix(std::ostream& out, const google::LogMessageInfo& line, void* /*data*/) {
  const std::string_view severity = line.severity;
  if (severity == "FATAL") out << "internal error: ";
  // What --v asks for is about our source, too.
  if (severity == "FATAL" || severity == "INFO") {
    out << line.filename << ":" << line.line_number << ":";
  } else {
    out << "warning:";
  }
}

/// Opens those of 0, 1 and 2 that the caller has closed: the next file that is opened would get the number, and what is
/// printed would go into it. What is written to standard output fails as it would have.
void HoldStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    was_closed[stream] = true;
    (void)::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

CommandLine ParseCommandLine(const ProgramInfo& program, int argc, char** argv) {
  CommandLine line = ReadCommandLine(program, argc, argv);
  for (const std::string& warning : line.warnings) Say(warning);
  if (!line.status.ok()) {
    PrintFailure(program.name, line.status);
    line.exit_code = ExitCode(line.status);
  }
  return line;
}

CommandLine ReadCommandLine(const ProgramInfo& program, int argc, char** argv) {
  signal(SIGCHLD, SIG_DFL);  // a parent that ignores it hands that on, and then nobody learns how a command ended
  signal(SIGXFSZ, SIG_IGN);  // a file that grew too large is an error of the write, with a message
  HoldStandardStreams();
  GuardStandardError();
  program_name = program.name;
  std::set_terminate(EndWithReason);
  FLAGS_logtostderr = true;
  if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("millrace", WriteLogPrefix);
  google::InstallFailureFunction(EndAfterFailedCheck);  // after glog has installed its own
  return Parser(program).Parse(argc, argv);
}

Status CheckIsOpen(int stream, const std::string& what) {
  if (!was_closed[stream]) return Status::Ok();
  return IoError(what + ": standard " + (stream == STDIN_FILENO ? "input" : "output") + " is closed");
}

Status CheckPrinted() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Status::Ok();
  struct stat output {};
  const bool is_pipe = ::fstat(STDOUT_FILENO, &output) == 0 && (S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode));
  if (is_pipe) return Status::Ok();
  MR_TRY(CheckIsOpen(STDOUT_FILENO, "the run is done, but what it printed is lost"));
  return IoError("the run is done, but standard output did not take all that was printed: is its disk full?");
}

Status FlushStandardOutput() {
  MR_TRY(CheckIsOpen(STDOUT_FILENO, "cannot write to standard output"));
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Status::Ok();
  return StandardOutputFailed("cannot write to standard output");
}

Status StandardOutputFailed(const std::string& what) {
  if (errno == EPIPE) reader_is_gone = true;
  return IoErrorFromErrno(what, errno);
}

int EndProgram(std::string_view program, const Status& status) {
  if (status.code() == StatusCode::kIo && reader_is_gone) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  if (!status.ok()) PrintFailure(program, status);
  return ExitCode(status);
}

void PrintFailure(std::string_view program, const Status& status) {
  const bool is_config = status.code() == StatusCode::kInvalidConfig;
  const bool is_report = status.message().find(": error: ") != std::string::npos;
  if (!is_report) std::cerr << program << ": ";
  std::cerr << (is_config || is_report ? status.message() : status.ToString()) << "\n";
}

int ExitCode(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk: return 0;
    case StatusCode::kInvalidConfig: return 2;
    case StatusCode::kBadData:
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
    case StatusCode::kIo:
    case StatusCode::kUnavailable: return 3;
    case StatusCode::kCancelled: return 130;
    case StatusCode::kInternal: return 4;
  }
  return 4;
}

}  // namespace millrace
