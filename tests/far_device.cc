#include "far_device.h"

#include <glog/logging.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace millrace {
namespace {

constexpr size_t kPage = 4096;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

/// Addresses without memory, and memory behind them that only FarDevice knows.
class FarMemory final : public Allocator {
 public:
  explicit FarMemory(const FarDevice& device) : Allocator(device), device_(device) {}

  Block Allocate(size_t bytes) override {
    if (bytes > device_.most_bytes_) return {};
    const size_t rounded = RoundUp(bytes, kPage);
    void* const far = mmap(nullptr, rounded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (far == MAP_FAILED) return {};
    auto* const behind = static_cast<char*>(std::malloc(rounded));
    std::memset(behind, 0xff, rounded);
    const std::lock_guard lock(device_.mutex_);
    device_.pieces_[static_cast<char*>(far)] = {rounded, behind};
    return {far, rounded};
  }
  void Free(Block block) override {
    const std::lock_guard lock(device_.mutex_);
    const auto piece = device_.pieces_.find(static_cast<char*>(block.data));
    CHECK(piece != device_.pieces_.end());
    std::free(piece->second.behind);
    munmap(block.data, piece->second.bytes);
    device_.pieces_.erase(piece);
  }

 private:
  const FarDevice& device_;
};

/// Stands for pinned memory: the CPU's, and known apart.
class FarHostMemory final : public Allocator {
 public:
  explicit FarHostMemory(const FarDevice& device) : Allocator(Cpu()), device_(device) {}

  Block Allocate(size_t bytes) override {
    const Block block = Cpu().memory().Allocate(bytes);
    const std::lock_guard lock(device_.mutex_);
    device_.host_pieces_[static_cast<char*>(block.data)] = block.bytes;
    return block;
  }
  void Free(Block block) override {
    {
      const std::lock_guard lock(device_.mutex_);
      device_.host_pieces_.erase(static_cast<char*>(block.data));
    }
    Cpu().memory().Free(block);
  }

 private:
  const FarDevice& device_;
};

class FarStream final : public Stream {
 public:
  explicit FarStream(const FarDevice& device) : device_(device) {}
  ~FarStream() override { CHECK(copies_.empty()) << "nobody has waited for the stream's copies"; }

  Status CopyFromHost(void* to, const void* from, size_t bytes) override {
    ++device_.queued_copies_;
    copies_.push_back({to, from, bytes});
    return Status::Ok();
  }
  Status Synchronize() override {
    for (const Copy& copy : copies_) MR_TRY(device_.CopyFromHost(copy.to, copy.from, copy.bytes));
    copies_.clear();
    return Status::Ok();
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
  };
  const FarDevice& device_;
  std::vector<Copy> copies_;
};

FarDevice::FarDevice()
    : Device("far"),
      memory_(std::make_unique<FarMemory>(*this)),
      host_memory_(std::make_unique<FarHostMemory>(*this)) {}

FarDevice::~FarDevice() {
  CHECK(pieces_.empty()) << "somebody keeps memory of a device that is gone";
  CHECK(host_pieces_.empty());
}

Allocator& FarDevice::memory() const { return *memory_; }
Allocator& FarDevice::host_memory() const { return *host_memory_; }
std::unique_ptr<Stream> FarDevice::MakeStream() const { return std::make_unique<FarStream>(*this); }

char* FarDevice::Behind(const void* far, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto* const address = static_cast<const char*>(far);
  auto piece = pieces_.upper_bound(address);
  CHECK(piece != pieces_.begin()) << "no address of the device";
  --piece;
  const auto at = static_cast<size_t>(address - piece->first);
  CHECK_LE(at + bytes, piece->second.bytes) << "no address of the device, or too many bytes from there";
  return piece->second.behind + at;
}

Status FarDevice::CopyFromHost(void* to, const void* from, size_t bytes) const {
  ++copies_from_host_;
  if (bytes > 0) std::memcpy(Behind(to, bytes), from, bytes);
  return Status::Ok();
}

Status FarDevice::CopyToHost(void* to, const void* from, size_t bytes) const {
  ++copies_to_host_;
  if (bytes == 0) return Status::Ok();
  std::memcpy(to, Behind(from, bytes), bytes);
  const std::lock_guard lock(mutex_);
  auto piece = host_pieces_.upper_bound(static_cast<char*>(to));
  if (piece != host_pieces_.begin() && static_cast<char*>(to) < (--piece)->first + piece->second) {
    ++copies_to_host_memory_;
  }
  return Status::Ok();
}

int64_t FarDevice::live_blocks() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(pieces_.size());
}

}  // namespace millrace
