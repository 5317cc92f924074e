#include "datafeed/input_opener.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "core/decompress.h"
#include "core/numbers.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// "s3" for "s3://bucket/part-0"; empty without a scheme.
std::string_view SchemeOf(std::string_view file) {
  const size_t colon = file.find(':');
  if (colon == std::string_view::npos || colon == 0 || !IsLetter(file[0])) return {};
  const std::string_view scheme = file.substr(0, colon);
  const bool plain = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return IsLetter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
  return plain ? scheme : std::string_view();
}

bool IsPlainFile(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

/// Only foreground processes can read a terminal: a child in its own group would be stopped.
bool IsTerminal(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0 || !S_ISCHR(info.st_mode)) return false;
  const FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  return fd.is_open() && ::isatty(fd.get()) == 1;
}

/// Whether a name refers to an open file of this process: "/dev/stdin", "/dev/fd/3".
bool IsOwnDescriptor(std::string_view file) {
  return file == "/dev/stdin" || file.starts_with("/dev/fd/") || file.starts_with("/proc/self/fd/");
}

/// Measures the time spent reading from a source.
class TimedSource final : public ByteSource {
 public:
  TimedSource(std::unique_ptr<ByteSource> source, std::shared_ptr<std::atomic<int64_t>> nanoseconds)
      : source_(std::move(source)), nanoseconds_(std::move(nanoseconds)) {}
  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    const auto start = std::chrono::steady_clock::now();
    Result<size_t> got = source_->Read(out, stop);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    nanoseconds_->fetch_add(took.count(), std::memory_order_relaxed);
    return got;
  }
  bool WaitReadable(std::chrono::milliseconds most) override { return source_->WaitReadable(most); }

 private:
  std::unique_ptr<ByteSource> source_;
  std::shared_ptr<std::atomic<int64_t>> nanoseconds_;
};

/// Fails at the end if the file behind a command's output was written or truncated meanwhile.
class WatchedSource final : public ByteSource {
 public:
  WatchedSource(std::unique_ptr<ByteSource> source, std::string file, const FileStamps& stamps)
      : source_(std::move(source)), file_(std::move(file)), stamps_(&stamps) {}
  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    Result<size_t> got = source_->Read(out, stop);
    if (got.ok() && *got == 0) MR_TRY(stamps_->End(file_));
    return got;
  }
  bool WaitReadable(std::chrono::milliseconds most) override { return source_->WaitReadable(most); }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string file_;
  const FileStamps* stamps_;
};

}  // namespace

std::string_view InputStageName(InputStage stage) {
  switch (stage) {
    case InputStage::kRead: return "read";
    case InputStage::kDecompress: return "decompress";
    case InputStage::kPipe: return "pipe";
    case InputStage::kFormat: return "format";
    case InputStage::kFetch: return "fetch";
    case InputStage::kNamedPipe: return "named_pipe";
  }
  return "read";
}

std::string_view PipeCommandOf(const DataFeedDesc& desc) {
  const std::string_view command = Trimmed(desc.pipe_command());
  return command == "cat" ? std::string_view() : command;
}

std::string ShownCommand(std::string_view command) {
  constexpr size_t kMost = 80;
  std::string text(command.substr(0, kMost));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return "`" + text + (command.size() > kMost ? "..." : "") + "`";
}

Result<std::unique_ptr<InputOpener>> InputOpener::Create(const DataFeedDesc& desc,
                                                         const std::vector<std::string>& files,
                                                         const std::stop_token& stop, const LineCut& cut) {
  std::unique_ptr<InputOpener> opener(new InputOpener);
  const std::string& opened_by = cut.opened_by;
  opener->opened_by_ = opened_by;
  opener->in_memory_ = cut.in_memory != nullptr;
  const double timeout = desc.pipe_timeout_seconds();
  if (!(timeout >= 0 && timeout <= 1e6)) {
    return InvalidConfig("data_desc.pipe_timeout_seconds must be from 0 to 1000000, not " + ShortestNumber(timeout));
  }
  const int64_t longest = desc.max_line_bytes();
  if (longest < LineLimit::kLeast || longest > LineLimit::kMost) {
    return InvalidConfig("data_desc.max_line_bytes must be from " + std::to_string(LineLimit::kLeast) + " to " +
                         std::to_string(LineLimit::kMost) + ", not " + std::to_string(longest));
  }
  opener->line_limit_ = {static_cast<size_t>(longest), "If it is, raise data_desc.max_line_bytes"};
  opener->timeout_ = std::chrono::milliseconds(static_cast<int64_t>(std::ceil(1000 * timeout)));
  const std::string_view pipe = PipeCommandOf(desc);
  if (pipe.find('\0') != std::string_view::npos) {
    return InvalidConfig("data_desc.pipe_command holds a NUL byte; a shell would take it for the command's end");
  }
  if (!pipe.empty() && !opened_by.empty()) {
    if (opener->in_memory_) {
      return InvalidConfig("data_desc.pipe_command: no command stands before rows in memory; leave it out");
    }
    return InvalidConfig("data_desc.pipe_command: the format \"" + opened_by +
                         "\" opens its files itself, so that no command can stand before it; leave it away");
  }
  opener->pipe_command_ = pipe;
  if (!pipe.empty()) opener->commands_.push_back({ShellArgv(opener->pipe_command_), false});
  if (!cut.command.empty()) opener->commands_.push_back({cut.command, true});
  for (const InputCommand& input : desc.input_commands()) {
    if (input.scheme().empty() || SchemeOf(input.scheme() + ":") != input.scheme()) {
      return InvalidConfig("data_desc.input_commands: \"" + input.scheme() +
                           "\" is no scheme; write \"s3\" for s3://...");
    }
    if (Trimmed(input.command()).empty()) {
      return InvalidConfig("data_desc.input_commands: scheme \"" + input.scheme() + "\" has no command");
    }
    opener->schemes_.push_back({input.scheme(), std::string(Trimmed(input.command()))});
  }
  // After the user's, which can override these.
  for (const char* known : {"hdfs", "afs"}) opener->schemes_.push_back({known, "hadoop fs -cat"});
  MR_ASSIGN(const bool needs_command, opener->CheckFiles(files, stop));
  if (needs_command) {
    MR_ASSIGN(opener->guard_, ChildGuard::Create());
  }
  return opener;
}

const InputOpener::SchemeCommand* InputOpener::CommandFor(std::string_view file) const {
  const std::string_view scheme = SchemeOf(file);
  for (const SchemeCommand& known : schemes_) {
    if (known.scheme == scheme) return &known;
  }
  return nullptr;
}

Status InputOpener::CheckFileOfFormat(const std::string& file) const {
  if (in_memory_ && file.starts_with(opened_by_ + ":")) return Status::Ok();
  if (in_memory_) {
    return InvalidConfig("\"" + file +
                         "\" is a file, and the job's other rows lie in memory; give its rows in memory, too");
  }
  const std::string path = PathOfFormat(file, opened_by_);
  if (::access(path.c_str(), R_OK) == 0) return Status::Ok();
  const int error = errno;
  if (CommandFor(file) != nullptr) {
    return InvalidConfig("\"" + file + "\" is to be read by a command, and the format \"" + opened_by_ +
                         "\" opens its files itself; copy it to this machine before");
  }
  if (error == ENOENT || error == ENOTDIR) return NotFound("no such file or folder: \"" + path + "\"");
  return IoErrorFromErrno("cannot read \"" + path + "\"", error);
}

Result<bool> InputOpener::CheckFile(const std::string& file) const {
  if (file.empty()) return NotFound("a file of the list has no name");
  if (!opened_by_.empty()) {
    MR_TRY(CheckFileOfFormat(file));
    return false;
  }
  if (CommandFor(file) != nullptr) return true;
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    const std::string_view scheme = SchemeOf(file);
    if (!scheme.empty() && errno == ENOENT) {
      return NotFound("no command reads \"" + file + "\"; add to data_desc: input_commands { scheme: \"" +
                      std::string(scheme) + "\" command: \"...\" }");
    }
    if (errno == ENOENT || errno == ENOTDIR) return NotFound("no such file: \"" + file + "\"");
    return IoErrorFromErrno("cannot inspect \"" + file + "\"", errno);
  }
  if (S_ISDIR(info.st_mode)) return IoError("\"" + file + "\" is a folder, not a file");
  if (::access(file.c_str(), R_OK) != 0) return IoErrorFromErrno("cannot read \"" + file + "\"", errno);
  return !commands_.empty() || !S_ISREG(info.st_mode);
}

Result<bool> InputOpener::CheckFiles(const std::vector<std::string>& files, const std::stop_token& stop) const {
  constexpr int kListed = 10;
  if (files.empty()) return NotFound("no input files: the file list is empty");
  Status first;
  std::string all;
  int bad = 0;
  bool needs_command = false;
  for (const std::string& file : files) {
    if (stop.stop_requested()) return Cancelled("stopped while checking the input files");
    const Result<bool> checked = CheckFile(file);
    if (checked.ok()) needs_command = needs_command || *checked;
    if (checked.ok()) continue;
    if (++bad <= kListed) all += "\n  " + checked.status().message();
    if (first.ok()) first = checked.status();
  }
  if (bad == 0) return needs_command;
  if (bad == 1) return first;
  if (bad > kListed) all += "\n  and " + std::to_string(bad - kListed) + " more";
  return Status(first.code(),
                std::to_string(bad) + " of " + std::to_string(files.size()) + " input files cannot be read:" + all);
}

Result<std::unique_ptr<ByteSource>> InputOpener::Start(std::vector<std::string> argv, const std::string& file,
                                                       SubprocessOptions options) const {
  options.argv = std::move(argv);
  options.label = file;
  options.silence_timeout = timeout_;
  return StartSubprocess(std::move(options), *guard_).Context(file);
}

Result<OpenedInput> InputOpener::Open(const std::string& file) const {
  if (!opened_by_.empty()) {
    if (!in_memory_) MR_TRY(stamps_.Begin(PathOfFormat(file, opened_by_)));
    return OpenedInput();
  }
  if (CommandFor(file) != nullptr) return OpenUnwatched(file);
  MR_TRY(stamps_.Begin(file));
  MR_ASSIGN(OpenedInput input, OpenUnwatched(file));
  // A command's end does not reveal changes of the file; without a command, the file source checks itself.
  if (IsOfCommand(input.stage)) {
    input.source = std::make_unique<WatchedSource>(std::move(input.source), file, stamps_);
  }
  return input;
}

Result<OpenedInput> InputOpener::OpenUnwatched(const std::string& file) const {
  OpenedInput input;
  size_t started = 0;  // index in commands_
  const SchemeCommand* scheme = CommandFor(file);
  if (scheme == nullptr && IsTerminal(file)) {
    MR_ASSIGN(input.source, OpenFile(file));
  } else if (scheme != nullptr || (guard_ != nullptr && !IsPlainFile(file))) {
    if (scheme == nullptr) MR_TRY(CheckFile(file).status());  // it may have been removed since it was listed
    std::vector<std::string> argv = scheme != nullptr ? ShellArgv(scheme->command + " \"$@\"", {file})
                                                      : std::vector<std::string>{"cat", "--", file};
    SubprocessOptions options;
    if (scheme == nullptr && IsOwnDescriptor(file)) {
      // In a child the name would refer to the child's descriptor, so pass ours.
      MR_ASSIGN(options.stdin_file, OpenForReading(file));
      argv = {"cat"};
    }
    if (scheme == nullptr) options.activity = "\"" + file + "\" was read";
    MR_ASSIGN(input.source, Start(std::move(argv), file, std::move(options)));
    input.source = Decompress(std::move(input.source), file);
    input.stage = scheme != nullptr ? InputStage::kFetch : InputStage::kNamedPipe;
  } else {
    MR_ASSIGN(const std::string first_bytes, ReadFirstBytes(file));
    const Compression compression = DetectCompression(first_bytes);
    MR_TRY(CheckPackedHasBytes(first_bytes, file));
    if (const std::string_view unpacker = ForeignUnpacker(first_bytes); !unpacker.empty() && pipe_command_.empty()) {
      return BadData("\"" + file + "\" is packed, and neither as gz nor as zstd: data_desc.pipe_command: \"" +
                     std::string(unpacker) + "\" unpacks it");
    }
    if (compression == Compression::kNone && !commands_.empty()) {
      // The first command reads the file itself and can seek in it.
      SubprocessOptions options;
      MR_ASSIGN(options.stdin_file, OpenForReading(file));
      options.explains_failure = commands_[0].is_of_format;
      MR_ASSIGN(input.source, Start(commands_[0].argv, file, std::move(options)));
      input.stage = commands_[0].stage();
      started = 1;
    } else {
      MR_ASSIGN(input.source, OpenFile(file));
    }
    if (compression != Compression::kNone) {
      input.source = Decompress(std::move(input.source), file);
      input.stage = InputStage::kDecompress;
    }
  }
  for (size_t i = started; i < commands_.size(); ++i) MR_TRY(PipeThrough(commands_[i], file, &input));
  return input;
}

Status InputOpener::PipeThrough(const PipeCommand& command, const std::string& file, OpenedInput* input) const {
  SubprocessOptions options;
  options.explains_failure = command.is_of_format;
  options.input = std::move(input->source);
  if (input->stage == InputStage::kDecompress) {
    auto unpacking = std::make_shared<std::atomic<int64_t>>(0);
    options.input = std::make_unique<TimedSource>(std::move(options.input), unpacking);
    input->unpacking = std::move(unpacking);
  }
  MR_ASSIGN(input->source, Start(command.argv, file, std::move(options)));
  input->stage = command.stage();
  return Status::Ok();
}

}  // namespace millrace
