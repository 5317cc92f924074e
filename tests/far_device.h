#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "program/op_registry.h"
#include "runtime/device.h"

namespace millrace {

/// A device whose memory the host cannot touch: following one of its addresses is a fault of the page. Its streams copy
/// when they are waited for, not before, and its new memory holds NaN. Counts copies.
class FarDevice final : public Device {
 public:
  FarDevice();
  ~FarDevice() override;

  Allocator& memory() const override;
  Allocator& host_memory() const override;
  std::unique_ptr<Stream> MakeStream() const override;
  Status CopyFromHost(void* to, const void* from, size_t bytes) const override;
  Status CopyToHost(void* to, const void* from, size_t bytes) const override;

  int64_t copies_from_host() const { return copies_from_host_; }
  int64_t copies_to_host() const { return copies_to_host_; }
  /// Those of them to host_memory().
  int64_t copies_to_host_memory() const { return copies_to_host_memory_; }
  /// Those that streams were given.
  int64_t queued_copies() const { return queued_copies_; }
  /// Pieces of the device's memory that somebody has.
  int64_t live_blocks() const;
  /// From now on, no memory is given for more bytes than this.
  void set_most_bytes(size_t most) { most_bytes_ = most; }

 private:
  friend class FarMemory;
  friend class FarHostMemory;
  friend class FarStream;
  /// What lies behind an address of the device; dies when it is none, or when `bytes` from there on are not one
  /// tensor's.
  char* Behind(const void* far, size_t bytes) const;

  struct Piece {
    size_t bytes;
    char* behind;
  };
  mutable std::mutex mutex_;
  mutable std::map<const char*, Piece> pieces_;        ///< by the device's address
  mutable std::map<const char*, size_t> host_pieces_;  ///< of host_memory()
  mutable std::atomic<int64_t> copies_from_host_ = 0;
  mutable std::atomic<int64_t> copies_to_host_ = 0;
  mutable std::atomic<int64_t> copies_to_host_memory_ = 0;
  mutable std::atomic<int64_t> queued_copies_ = 0;
  std::atomic<size_t> most_bytes_ = SIZE_MAX;
  std::unique_ptr<Allocator> memory_;
  std::unique_ptr<Allocator> host_memory_;
};

}  // namespace millrace
