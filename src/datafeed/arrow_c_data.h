#pragma once

#include <cstdint>

// The C data interface of Apache Arrow, a published ABI for exchanging columns between libraries of one process without
// copying and without compile-time dependencies. Names, layout and guards are the ABI's, so other headers can define
// the same structs.
extern "C" {

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

/// Describes the values of a column.
struct ArrowSchema {
  const char* format;  ///< "l": int64, "u": UTF-8 with offsets of 32 bits, "+s": a struct of columns, ...
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);  ///< null after it was called
  void* private_data;
};

/// The values of a column; as a struct, a part of the rows.
struct ArrowArray {
  int64_t length;
  int64_t null_count;  ///< -1: unknown
  int64_t offset;      ///< of the first value in the buffers
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;  ///< the first is a validity bitmap; null: all values are valid
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/// Rows in batches. Calls return 0 or an errno.
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);  ///< at the end `out` is already released
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

#endif  // ARROW_C_STREAM_INTERFACE
}

namespace millrace {

/// Owns and releases one of these structs.
template <class T>
class ArrowOwner {
 public:
  ArrowOwner() = default;
  /// Takes ownership from `given`.
  explicit ArrowOwner(T* given) : value_(*given) { given->release = nullptr; }
  ArrowOwner(ArrowOwner&& other) noexcept : value_(other.value_) { other.value_.release = nullptr; }
  ArrowOwner& operator=(ArrowOwner&& other) noexcept {
    if (this == &other) return *this;
    Release();
    value_ = other.value_;
    other.value_.release = nullptr;
    return *this;
  }
  ~ArrowOwner() { Release(); }

  T* get() { return &value_; }
  const T* get() const { return &value_; }
  const T* operator->() const { return &value_; }
  bool is_released() const { return value_.release == nullptr; }

 private:
  void Release() {
    if (value_.release != nullptr) value_.release(&value_);
  }
  T value_{};
};

}  // namespace millrace
