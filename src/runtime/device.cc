#include "runtime/device.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "program/op_registry.h"

namespace millrace {
namespace {

constexpr size_t kAlignment = 64;

// From this size, huge pages are requested: random access to embedding rows is then twice as fast.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;

class CpuMemory final : public Allocator {
 public:
  using Allocator::Allocator;

  Block Allocate(size_t bytes) override {
    const size_t alignment = bytes >= kHugeFrom ? kHugePage : kAlignment;
    const size_t wanted = (bytes + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, wanted);
    if (memory == nullptr) return {};
    if (alignment == kHugePage) madvise(memory, wanted, MADV_HUGEPAGE);  // a hint: small pages also work
    return {memory, wanted};
  }
  void Free(Block block) override { std::free(block.data); }
};

}  // namespace

Allocator::Allocator(const Device& device) : device_(&device), is_on_host_(device.is_host()) {}

class CpuDevice final : public Device {
 public:
  CpuDevice() : Device(std::string(kCpu), true) {}

  Allocator& memory() const override { return memory_; }
  Allocator& host_memory() const override { return memory_; }
  std::unique_ptr<Stream> MakeStream() const override { return nullptr; }
  Status CopyFromHost(void* to, const void* from, size_t bytes) const override { return Copy(to, from, bytes); }
  Status CopyToHost(void* to, const void* from, size_t bytes) const override { return Copy(to, from, bytes); }

 private:
  static Status Copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return Status::Ok();
  }

  mutable CpuMemory memory_{*this};
};

const Device& Cpu() {
  static const CpuDevice device;
  return device;
}

}  // namespace millrace
