#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/status.h"

namespace millrace {

class Device;

/// Gives and takes back memory of one kind: a device's own, or the host's that a device copies from and to.
///
/// Outlives every tensor that took memory from it. Thread-safe.
class Allocator {
 public:
  struct Block {
    void* data = nullptr;
    size_t bytes = 0;
  };

  /// `device`: whose kernels read and write this memory.
  explicit Allocator(const Device& device);
  virtual ~Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  const Device& device() const { return *device_; }
  /// True when the host's code may follow these addresses.
  bool is_on_host() const { return is_on_host_; }

  /// At least `bytes`, aligned to 64 of them and not initialised; a null `data` when there is no memory.
  virtual Block Allocate(size_t bytes) = 0;
  /// What Allocate returned.
  virtual void Free(Block block) = 0;

 private:
  const Device* device_;
  bool is_on_host_;
};

/// Work of one frame on its device, done in the order in which it was given. Kernels of the device take it for the
/// class that they know. One thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Queues a copy to the device's memory; `from` must stay until it is done.
  virtual Status CopyFromHost(void* to, const void* from, size_t bytes) = 0;
  /// Waits until everything is done; the first failure of it comes back here.
  virtual Status Synchronize() = 0;
};

/// What programs run on: memory, copies between it and the host's, streams. Kernels are registered for its name
/// (program/op_registry.h). Thread-safe; outlives whatever lies on it.
class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// "cpu", "cuda".
  const std::string& name() const { return name_; }
  /// True for the CPU alone.
  bool is_host() const { return is_host_; }

  /// Where the tensors of its programs lie.
  virtual Allocator& memory() const = 0;
  /// Memory of the host that it copies to quickly (pinned, on a GPU).
  virtual Allocator& host_memory() const = 0;
  /// A stream of its own for a frame; null: kernels have done their work when they return.
  virtual std::unique_ptr<Stream> MakeStream() const = 0;
  /// Copies, and returns when it is done. What streams have in hand is not waited for.
  virtual Status CopyFromHost(void* to, const void* from, size_t bytes) const = 0;
  virtual Status CopyToHost(void* to, const void* from, size_t bytes) const = 0;

 protected:
  explicit Device(std::string name) : Device(std::move(name), false) {}

 private:
  friend class CpuDevice;
  Device(std::string name, bool is_host) : name_(std::move(name)), is_host_(is_host) {}

  std::string name_;
  bool is_host_;
};

/// The machine's own processors and memory; from 4 MiB on its memory is asked for in huge pages.
const Device& Cpu();

}  // namespace millrace
