#include "runtime/tensor.h"

#include <glog/logging.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace millrace {
namespace {

constexpr size_t kAlignment = 64;

// From here on a tensor asks for huge pages: random rows of an embedding matrix are then found twice as fast.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Half of what a size_t counts, so that what is added for growth counts too.
constexpr size_t kMostBytes = SIZE_MAX / 2;

size_t BytesOf(DType type, const Dims& dims) {
  const std::span<const int64_t> sizes = dims.sizes();
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) {
    throw std::invalid_argument("a tensor of negative size " + dims.ToString());
  }
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  size_t bytes = SizeOf(type);
  for (const int64_t size : sizes) {
    if (bytes > kMostBytes / static_cast<size_t>(size)) throw NoMemory(type, dims);
    bytes *= static_cast<size_t>(size);
  }
  return bytes;
}

}  // namespace

const void* Tensor::Raw(DType type) const {
  if (type != dtype_) {
    throw std::invalid_argument("a tensor of " + std::string(DTypeName(dtype_)) + " was taken for one of " +
                                std::string(DTypeName(type)));
  }
  return data_;
}

void* Tensor::ResizeRaw(DType type, const Dims& dims) {
  if (dims.too_many()) {
    throw std::invalid_argument("a tensor of more axes than " + std::to_string(Dims::kMaxRank) + ": " +
                                dims.ToString());
  }
  const size_t bytes = BytesOf(type, dims);
  if (buffer_ == nullptr || bytes > capacity_) {
    // Half as much again, so that a batch a little larger than the last one does not allocate each time.
    const size_t least = std::max(bytes, capacity_ + capacity_ / 2) + 1;
    const size_t alignment = least >= kHugeFrom ? kHugePage : kAlignment;
    const size_t wanted = RoundUp(least, alignment);
    void* memory = std::aligned_alloc(alignment, wanted);
    if (memory == nullptr) throw NoMemory(type, dims);
    if (alignment == kHugePage) madvise(memory, wanted, MADV_HUGEPAGE);  // a wish: small pages work as well
    buffer_.reset(memory);
    capacity_ = wanted;
  }
  dtype_ = type;
  dims_ = dims;
  data_ = buffer_.get();
  lod_ = {};
  return buffer_.get();
}

void Tensor::View(DType type, const Dims& dims, const void* data) {
  dtype_ = type;
  dims_ = dims;
  data_ = data;
  lod_ = {};
}

void Tensor::ViewOf(const Tensor& other, const Dims& dims) {
  DCHECK_EQ(other.numel(), dims.numel());
  View(other.dtype_, dims, other.data_);
  lod_ = other.lod_;
}

}  // namespace millrace
