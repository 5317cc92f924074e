#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <stop_token>

#include "core/status.h"

namespace millrace {

/// Whether the caller has already read files of this pass.
enum class FileTurn : uint8_t { kFirst, kLater };

/// Hands out the file numbers 0, 1, 2, ... of a list, each once, to the next reader.
///
/// Any thread. A number beyond the list means that none is left for the caller; all its later calls return such
/// numbers.
class FileQueue {
 public:
  virtual ~FileQueue() = default;
  /// Waits if necessary. Fails with kCancelled after a stop request; a queue shared by ranks also fails with its
  /// communication.
  virtual Result<size_t> Next(FileTurn turn, const std::stop_token& stop) = 0;
};

/// For files read by one process: an atomic counter that never fails.
class LocalFileQueue final : public FileQueue {
 public:
  Result<size_t> Next(FileTurn /*turn*/, const std::stop_token& /*stop*/) override {
    return next_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<size_t> next_{0};
};

/// For a process that must not read files.
class NoFiles final : public FileQueue {
 public:
  Result<size_t> Next(FileTurn /*turn*/, const std::stop_token& /*stop*/) override {
    return std::numeric_limits<size_t>::max();
  }
};

/// Creates the queue of a pass, given its number.
using FileQueueOfPass = std::function<std::unique_ptr<FileQueue>(int64_t pass)>;

}  // namespace millrace
