#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_source.h"
#include "core/file_stamps.h"
#include "core/line_blocks.h"
#include "core/status.h"
#include "core/subprocess.h"
#include "datafeed/line_cut.h"

namespace millrace {

class DataFeedDesc;

/// What reading a file mostly costs; names of PassStats::stage_seconds.
enum class InputStage : uint8_t {
  kRead,
  kDecompress,
  kPipe,      ///< waiting for a pipe_command
  kFormat,    ///< for the command of a format: the Python that reads Parquet
  kFetch,     ///< for an input_command
  kNamedPipe  ///< for who writes a named pipe, or what else is no plain file
};
inline constexpr size_t kInputStages = 6;
std::string_view InputStageName(InputStage stage);
/// Whether the bytes come from a process, which `cat` is, too.
inline bool IsOfCommand(InputStage stage) { return stage >= InputStage::kPipe; }

/// The pipe_command of a desc without the space around it; empty for none, and for "cat", which is none.
std::string_view PipeCommandOf(const DataFeedDesc& desc);
/// A command as messages show it: on one line, in backquotes, cut to a readable length.
std::string ShownCommand(std::string_view command);

/// A file that is being read.
struct OpenedInput {
  std::unique_ptr<ByteSource> source;
  InputStage stage = InputStage::kRead;
  /// Nanoseconds that another thread has spent so far on unpacking the file for the pipe_command, which users do not
  /// always expect; null when that is not done.
  std::shared_ptr<const std::atomic<int64_t>> unpacking;
};

/// Opens input files as a desc says: gz and zstd unpacked, through its pipe_command, by a command for their scheme.
///
/// The pipe_command gets the file as its stdin; it is run by `bash -o pipefail -c`, once a file. "cat" and nothing
/// mean no command. Behind it stands the command of a format that has one (LineCut::command). A file "SCHEME:..." comes
/// from the input_command of its scheme, with the name as an argument ("hdfs:" and "afs:" have one: hadoop fs -cat).
/// What is no plain file (a named pipe, a device) is read through `cat`, so that a stop request need not wait for it.
/// No file name is ever part of a shell text. A plain file that changes while it is read, or until it is opened again,
/// is an error. Thread-safe; what it opens must not outlive it.
class InputOpener {
 public:
  /// kInvalidConfig when a setting makes no sense; otherwise CheckFiles' errors. Starts the guard that kills commands
  /// when this process is killed, if these files need commands. A stop request ends the look at many files: kCancelled.
  /// Of a `cut` whose format opens these files itself, they may be folders, or no files at all; kInvalidConfig for a
  /// command.
  static Result<std::unique_ptr<InputOpener>> Create(const DataFeedDesc& desc, const std::vector<std::string>& files,
                                                     const std::stop_token& stop = {}, const LineCut& cut = {});

  /// Starts reading. Failures name the file. One that its format opens has no source.
  Result<OpenedInput> Open(const std::string& file) const;
  /// What is opened from now on may be other files than before, under their names.
  void ForgetFiles() { stamps_.Forget(); }
  /// Empty: none.
  const std::string& pipe_command() const { return pipe_command_; }
  /// How long a line of these files may be.
  const LineLimit& line_limit() const { return line_limit_; }

 private:
  struct SchemeCommand {
    std::string scheme;
    std::string command;
  };
  /// That a file goes through.
  struct PipeCommand {
    std::vector<std::string> argv;
    bool is_of_format;  ///< LineCut::command: its failures are ours to tell
    InputStage stage() const { return is_of_format ? InputStage::kFormat : InputStage::kPipe; }
  };
  InputOpener() = default;
  /// The command for a file's scheme; null when the file is a local one.
  const SchemeCommand* CommandFor(std::string_view file) const;
  /// Whether a command reads the file.
  Result<bool> CheckFile(const std::string& file) const;
  Status CheckFileOfFormat(const std::string& file) const;
  /// Whether a command reads any of them; all that cannot be read come back in one failure.
  Result<bool> CheckFiles(const std::vector<std::string>& files, const std::stop_token& stop) const;
  Result<OpenedInput> OpenUnwatched(const std::string& file) const;
  /// Puts a command behind what is read.
  Status PipeThrough(const PipeCommand& command, const std::string& file, OpenedInput* input) const;
  Result<std::unique_ptr<ByteSource>> Start(std::vector<std::string> argv, const std::string& file,
                                            SubprocessOptions options) const;

  std::string opened_by_;              ///< empty: files are opened here
  bool in_memory_ = false;             ///< they are no files
  std::string pipe_command_;           ///< empty: none
  std::vector<PipeCommand> commands_;  ///< pipe_command_, and that of the format
  std::vector<SchemeCommand> schemes_;
  std::chrono::milliseconds timeout_{0};
  LineLimit line_limit_;
  std::unique_ptr<ChildGuard> guard_;
  mutable FileStamps stamps_;
};

}  // namespace millrace
