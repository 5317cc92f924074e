#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/file_stamps.h"
#include "reader/prefetcher.h"
#include "reader/reader.h"
#include "reader/reader_registry.h"

namespace millrace {

/// Which files a MultipleReader reads, and how.
struct OpenFilesOptions {
  std::vector<std::string> files;  ///< with "TAG:" or a suffix, unless `format` says
  std::string format;              ///< tag of all files; empty: each name says
  int threads = 1;
  size_t buffer_size = 1;  ///< examples that wait in the buffer at most
};

/// Reads many files as one: each thread takes a file from the queue, reads it to its end into the one buffer, and takes
/// the next. With one thread, examples come file by file in the order of the list. A plain file that changes while it
/// is read, or until the next pass, ends the pass with kIo.
class MultipleReader final : public ReaderBase {
 public:
  /// Makes a reader of every file once, so that what is wrong with any of them is known before the first is read:
  /// formats, shapes, missing files. kInvalidConfig for no files, threads or buffer.
  static Result<std::unique_ptr<MultipleReader>> Create(const OpenFilesOptions& options, const ReaderRegistry& registry,
                                                        std::vector<TensorSpec> shapes);

 private:
  MultipleReader(const OpenFilesOptions& options, std::vector<ReaderRegistry::NamedFile> files,
                 std::vector<TensorSpec> shapes);
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;
  /// One thread's work: file after file from the queue.
  Status ReadFiles(const std::stop_token& stop);

  std::vector<ReaderRegistry::NamedFile> files_;
  std::vector<char> is_begun_;  ///< file by file, whether it was ever opened to be read
  FileStamps stamps_;           ///< of the first pass
  std::atomic<size_t> next_file_{0};
  Prefetcher prefetcher_;  // last: its threads end before the rest
};

}  // namespace millrace
