#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace millrace {

/// Encoding of floats in messages.
enum class WireFloat : uint8_t {
  kFloat32,
  kBFloat16,  ///< upper 16 bits, rounded to even: 8 bits of precision
};

/// The nearest bfloat16, ties to even; NaN stays NaN.
inline uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}
inline float FromBFloat16(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16U); }
/// The value the receiver gets.
inline float AsSent(float value, WireFloat as) {
  return as == WireFloat::kFloat32 ? value : FromBFloat16(ToBFloat16(value));
}

/// Appends values to a message in this machine's byte order: all ranks of a job must have the same.
class WireWriter {
 public:
  explicit WireWriter(std::string* out) : out_(out) {}

  template <class T>
  void Put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out_->append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  /// Writes the count, then the values.
  template <class T>
  void PutAll(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    Put(static_cast<uint64_t>(values.size()));
    out_->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  /// Writes the count, then the encoded floats.
  void PutFloats(std::span<const float> values, WireFloat as) {
    if (as == WireFloat::kFloat32) return PutAll(values);
    Put(static_cast<uint64_t>(values.size()));
    const size_t begin = out_->size();
    out_->resize(begin + values.size() * sizeof(uint16_t));
    char* to = out_->data() + begin;
    for (const float value : values) {
      const uint16_t bits = ToBFloat16(value);
      std::memcpy(to, &bits, sizeof(bits));
      to += sizeof(bits);
    }
  }
  void PutText(std::string_view text) { PutAll(std::span<const char>(text)); }

 private:
  std::string* out_;
};

/// Reads values from the front of a message. Missing data gives zero or empty values, and ok() is false from then on.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T Get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    Take(&value, sizeof(T));
    return value;
  }
  /// Reads the values of PutAll.
  template <class T>
  void GetAll(std::vector<T>* values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto count = Get<uint64_t>();
    ok_ = ok_ && count <= bytes_.size() / sizeof(T);
    values->resize(ok_ ? count : 0);
    Take(values->data(), values->size() * sizeof(T));
  }
  /// The bytes of PutAll's values, as a view of the message.
  template <class T>
  std::string_view GetBytesOfAll() {
    const auto count = Get<uint64_t>();
    ok_ = ok_ && count <= bytes_.size() / sizeof(T);
    const std::string_view bytes = bytes_.substr(0, ok_ ? count * sizeof(T) : 0);
    bytes_.remove_prefix(bytes.size());
    return bytes;
  }
  /// Reads the floats of PutFloats.
  void GetFloats(WireFloat as, std::vector<float>* values) {
    const auto count = Get<uint64_t>();
    ok_ = ok_ && count <= bytes_.size() / SizeOf(as);
    values->resize(ok_ ? count : 0);
    GetFloats(as, values->data(), values->size());
  }
  /// Reads `count` floats written without a count.
  void GetFloats(WireFloat as, float* values, size_t count) {
    if (as == WireFloat::kFloat32) return Take(values, count * sizeof(float));
    ok_ = ok_ && count <= bytes_.size() / sizeof(uint16_t);
    if (!ok_) return;
    for (size_t i = 0; i < count; ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes_.data() + i * sizeof(bits), sizeof(bits));
      values[i] = FromBFloat16(bits);
    }
    bytes_.remove_prefix(count * sizeof(uint16_t));
  }
  /// Removes and returns the last value of the message.
  template <class T>
  T GetLast() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    ok_ = ok_ && sizeof(T) <= bytes_.size();
    if (!ok_) return value;
    std::memcpy(&value, bytes_.data() + bytes_.size() - sizeof(T), sizeof(T));
    bytes_.remove_suffix(sizeof(T));
    return value;
  }
  /// Reads the text of PutText; a view of the message.
  std::string_view GetText() {
    const auto size = Get<uint64_t>();
    ok_ = ok_ && size <= bytes_.size();
    const std::string_view text = bytes_.substr(0, ok_ ? size : 0);
    bytes_.remove_prefix(text.size());
    return text;
  }
  std::string_view rest() const { return bytes_; }
  bool ok() const { return ok_; }
  /// Marks the message as inconsistent.
  void Fail() { ok_ = false; }

 private:
  static size_t SizeOf(WireFloat as) { return as == WireFloat::kFloat32 ? sizeof(float) : sizeof(uint16_t); }

  void Take(void* to, size_t size) {
    ok_ = ok_ && size <= bytes_.size();
    if (!ok_ || size == 0) return;
    std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace millrace
