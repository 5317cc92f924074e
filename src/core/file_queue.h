#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <stop_token>

#include "core/status.h"

namespace millrace {

/// Whether who asks has read files of this pass before.
enum class FileTurn : uint8_t { kFirst, kLater };

/// Hands out the numbers of the files of a list, 0, 1, 2, ..., each once, to whoever reads next.
///
/// Any thread may ask. A number that no file has says that none is left for who asks; every later one of his does so,
/// too.
class FileQueue {
 public:
  virtual ~FileQueue() = default;
  /// kCancelled at a stop request, where it waits.
  virtual Result<size_t> Next(FileTurn turn, const std::stop_token& stop) = 0;
};

/// Of files that are read in one process: an atomic count, which never fails.
class LocalFileQueue final : public FileQueue {
 public:
  Result<size_t> Next(FileTurn /*turn*/, const std::stop_token& /*stop*/) override {
    return next_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<size_t> next_{0};
};

/// Of a process that is to read no file.
class NoFiles final : public FileQueue {
 public:
  Result<size_t> Next(FileTurn /*turn*/, const std::stop_token& /*stop*/) override {
    return std::numeric_limits<size_t>::max();
  }
};

/// Makes the queue of a pass, by its number.
using FileQueueOfPass = std::function<std::unique_ptr<FileQueue>(int64_t pass)>;

}  // namespace millrace
