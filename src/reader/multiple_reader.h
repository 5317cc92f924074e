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

/// The files of a MultipleReader and how to read them.
struct OpenFilesOptions {
  std::vector<std::string> files;  ///< with "TAG:" or a suffix unless `format` is set
  std::string format;              ///< tag of all files; empty: use each name
  int threads = 1;
  size_t buffer_size = 1;  ///< maximum number of buffered examples
};

/// Reads many files as one: each thread takes a file from the queue, reads it to its end into a shared buffer, and
/// takes the next. With one thread, examples are in the order of the file list. A regular file that changes while it is
/// read, or before the next pass, ends the pass with kIo.
class MultipleReader final : public ReaderBase {
 public:
  /// Creates a reader for every file to find errors before reading: formats, shapes, missing files. Fails with
  /// kInvalidConfig without files, threads or buffer, and like ReaderRegistry::Open.
  static Result<std::unique_ptr<MultipleReader>> Create(const OpenFilesOptions& options, const ReaderRegistry& registry,
                                                        std::vector<TensorSpec> shapes);

 private:
  MultipleReader(const OpenFilesOptions& options, std::vector<ReaderRegistry::NamedFile> files,
                 std::vector<TensorSpec> shapes);
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;
  /// Runs in each thread: reads files from the queue.
  Status ReadFiles(const std::stop_token& stop);

  std::vector<ReaderRegistry::NamedFile> files_;
  std::vector<char> is_begun_;  ///< by file: whether it was opened before
  FileStamps stamps_;           ///< of the first pass
  std::atomic<size_t> next_file_{0};
  Prefetcher prefetcher_;  // declared last: its threads end first
};

}  // namespace millrace
