#pragma once

#include <cstddef>
#include <utility>

namespace millrace {

/// Owns zeroed memory for a large array. From 2 MiB it is aligned to huge pages and requests them from the kernel,
/// unless kSmall is given: random access to gigabytes is then twice as fast. Pages are allocated on first touch.
class HugeBuffer {
 public:
  static constexpr size_t kHugePage = size_t{2} << 20;

  enum class Pages {
    kHuge,
    kSmall,  ///< also aligned, but small pages: for buffers that may stay small
  };

  HugeBuffer() = default;
  /// Throws std::bad_alloc if the system refuses.
  explicit HugeBuffer(size_t bytes, Pages pages = Pages::kHuge);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  HugeBuffer& operator=(HugeBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace millrace
