#pragma once

#include <cstdint>

// The C data interface of Apache Arrow, a published ABI: by these structs libraries of one process hand columns to each
// other without copying them, and without knowing each other. Names and layout are the ABI's, as are the guards, so
// that others may define the same beside us.
extern "C" {

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

/// What the values of a column are.
struct ArrowSchema {
  const char* format;  ///< "l": int64, "u": UTF-8 with offsets of 32 bits, "+s": a struct of columns, ...
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);  ///< null once it was called
  void* private_data;
};

/// The values of a column, or, as a struct, of some rows.
struct ArrowArray {
  int64_t length;
  int64_t null_count;  ///< -1: nobody counted
  int64_t offset;      ///< of the first value in the buffers
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;  ///< the first one has a bit for each value that is there; null: all are
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/// Rows that come batch by batch. Calls return 0, or an errno.
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);  ///< the end: one that is released already
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

#endif  // ARROW_C_STREAM_INTERFACE
}

namespace millrace {

/// Owns one of these structs, and releases it.
template <class T>
class ArrowOwner {
 public:
  ArrowOwner() = default;
  /// Takes over what `given` owns.
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
