#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/status.h"

namespace millrace {

class Device;

/// Allocates one kind of memory: a device's, or the host's for copies from and to a device.
///
/// Must outlive the tensors that use it. Thread-safe.
class Allocator {
 public:
  struct Block {
    void* data = nullptr;
    size_t bytes = 0;
  };

  /// `device`: the device whose kernels access this memory.
  explicit Allocator(const Device& device);
  virtual ~Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  const Device& device() const { return *device_; }
  /// Whether host code can access the addresses.
  bool is_on_host() const { return is_on_host_; }

  /// Returns at least `bytes`, aligned to 64 and uninitialized; a null `data` if there is no memory.
  virtual Block Allocate(size_t bytes) = 0;
  /// Frees a block returned by Allocate.
  virtual void Free(Block block) = 0;

 private:
  const Device* device_;
  bool is_on_host_;
};

/// The work queue of one frame on its device, executed in order. Kernels of the device cast it to their class. One
/// thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Queues a copy to the device's memory; `from` must stay valid until it is done. Fails if the device cannot queue
  /// it.
  virtual Status CopyFromHost(void* to, const void* from, size_t bytes) = 0;
  /// Waits for all queued work and returns its first failure.
  virtual Status Synchronize() = 0;
};

/// The hardware that programs run on: memory, copies to and from the host's, streams. Kernels are registered by its
/// name (program/op_registry.h). Thread-safe; must outlive everything allocated on it.
class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// "cpu", "cuda".
  const std::string& name() const { return name_; }
  /// True only for the CPU.
  bool is_host() const { return is_host_; }

  /// Memory for the tensors of its programs.
  virtual Allocator& memory() const = 0;
  /// Host memory for fast copies (pinned, for a GPU).
  virtual Allocator& host_memory() const = 0;
  /// Creates a stream for a frame; null: kernels are synchronous.
  virtual std::unique_ptr<Stream> MakeStream() const = 0;
  /// Synchronous copies. They do not wait for streams. Fail if the device does.
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

/// The machine's CPUs and memory; allocations from 4 MiB use huge pages.
const Device& Cpu();

}  // namespace millrace
