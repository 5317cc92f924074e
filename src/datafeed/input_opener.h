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

/// The main cost of reading a file; names in PassStats::stage_seconds.
enum class InputStage : uint8_t {
  kRead,
  kDecompress,
  kPipe,      ///< waiting for a pipe_command
  kFormat,    ///< waiting for the command of a format, for example Python reading Parquet
  kFetch,     ///< waiting for an input_command
  kNamedPipe  ///< waiting for the writer of a named pipe or another special file
};
inline constexpr size_t kInputStages = 6;
std::string_view InputStageName(InputStage stage);
/// Whether the bytes come from a process, including `cat`.
inline bool IsOfCommand(InputStage stage) { return stage >= InputStage::kPipe; }

/// The trimmed pipe_command of a desc; empty for none and for "cat".
std::string_view PipeCommandOf(const DataFeedDesc& desc);
/// A command as shown in messages: on one line, in backquotes, shortened.
std::string ShownCommand(std::string_view command);

/// An opened file.
struct OpenedInput {
  std::unique_ptr<ByteSource> source;
  InputStage stage = InputStage::kRead;
  /// Nanoseconds that another thread has spent so far decompressing the file for the pipe_command; null if it does not.
  std::shared_ptr<const std::atomic<int64_t>> unpacking;
};

/// Opens input files as a desc specifies: decompresses gz and zstd, runs the pipe_command, and runs the command of a
/// scheme.
///
/// The pipe_command gets the file as stdin and runs with `bash -o pipefail -c`, once per file. "cat" and an empty
/// string mean no command. The command of a format, if any, follows it (LineCut::command). A file "SCHEME:..." is read
/// with the input_command of its scheme, with the name as an argument ("hdfs:" and "afs:" default to hadoop fs -cat).
/// Special files (named pipes, devices) are read with `cat`, so that a stop request does not wait for them. File names
/// are never part of shell text. A regular file that changes while read, or before it is opened again, is an error.
/// Thread-safe; opened inputs must not outlive it.
class InputOpener {
 public:
  /// Checks settings and files, and starts the guard that kills commands when this process is killed, if commands are
  /// needed. If the format of `cut` opens files itself, they can be folders or not exist in the file system. Fails with
  /// kInvalidConfig for an invalid setting or a command before such a format, kNotFound for an empty list, a missing
  /// file or a scheme without command, kIo for an unreadable file or a folder, kCancelled after a stop request. One
  /// message lists all bad files.
  static Result<std::unique_ptr<InputOpener>> Create(const DataFeedDesc& desc, const std::vector<std::string>& files,
                                                     const std::stop_token& stop = {}, const LineCut& cut = {});

  /// Starts reading. If the format opens the file itself, the result has no source. Fails with kNotFound if the file or
  /// a program is missing, kIo if it cannot be read or started, kBadData for a file that is compressed otherwise than
  /// with gz or zstd; messages name the file.
  Result<OpenedInput> Open(const std::string& file) const;
  /// Allows files to have changed since they were opened before.
  void ForgetFiles() { stamps_.Forget(); }
  /// Empty: none.
  const std::string& pipe_command() const { return pipe_command_; }
  /// Limit for the length of a line of these files.
  const LineLimit& line_limit() const { return line_limit_; }

 private:
  struct SchemeCommand {
    std::string scheme;
    std::string command;
  };
  /// A command that files pass through.
  struct PipeCommand {
    std::vector<std::string> argv;
    bool is_of_format;  ///< LineCut::command: messages must explain its failures
    InputStage stage() const { return is_of_format ? InputStage::kFormat : InputStage::kPipe; }
  };
  InputOpener() = default;
  /// The command for a file's scheme; null for a local file.
  const SchemeCommand* CommandFor(std::string_view file) const;
  /// Whether a command reads the file.
  Result<bool> CheckFile(const std::string& file) const;
  Status CheckFileOfFormat(const std::string& file) const;
  /// Whether a command reads any of them; one failure lists all unreadable files.
  Result<bool> CheckFiles(const std::vector<std::string>& files, const std::stop_token& stop) const;
  Result<OpenedInput> OpenUnwatched(const std::string& file) const;
  /// Adds a command after the current input.
  Status PipeThrough(const PipeCommand& command, const std::string& file, OpenedInput* input) const;
  Result<std::unique_ptr<ByteSource>> Start(std::vector<std::string> argv, const std::string& file,
                                            SubprocessOptions options) const;

  std::string opened_by_;              ///< empty: this class opens files
  bool in_memory_ = false;             ///< files are rows in memory
  std::string pipe_command_;           ///< empty: none
  std::vector<PipeCommand> commands_;  ///< pipe_command_ and the format's command
  std::vector<SchemeCommand> schemes_;
  std::chrono::milliseconds timeout_{0};
  LineLimit line_limit_;
  std::unique_ptr<ChildGuard> guard_;
  mutable FileStamps stamps_;
};

}  // namespace millrace
