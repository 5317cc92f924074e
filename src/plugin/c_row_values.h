#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugin/plugin_abi.h"

namespace millrace {

/// Collects the values that a plugin of the C tier delivers for one row, by column. One thread; does not allocate when
/// warm.
class CRowValues {
 public:
  /// `columns` must outlive it.
  explicit CRowValues(std::span<const millrace_column> columns);
  CRowValues(const CRowValues&) = delete;
  CRowValues& operator=(const CRowValues&) = delete;

  /// The functions for the plugin. Refers to this object.
  const millrace_sink& sink() const { return sink_; }
  /// Clears the row, but not the out-of-memory state.
  void Clear();
  /// Whether every column has its required values; otherwise column() and misfit() describe the first fault.
  bool Check();
  size_t column() const { return column_; }
  /// "expected 2 values, found 3".
  const std::string& misfit() const { return misfit_; }
  /// "no memory for 2147483648 values of a row" of column() after an allocation failed; otherwise empty. After that,
  /// values are ignored, to avoid repeating the same allocation at every call.
  std::string NoMemory() const;

  std::span<const uint64_t> ids(std::integral auto column) const { return columns_[static_cast<size_t>(column)].ids; }
  std::span<const float> floats(std::integral auto column) const {
    return columns_[static_cast<size_t>(column)].floats;
  }

 private:
  struct Column {
    std::vector<uint64_t> ids;
    std::vector<float> floats;
  };
  static void TakeIds(void* host, size_t column, const uint64_t* values, size_t count);
  static void TakeFloats(void* host, size_t column, const float* values, size_t count);
  /// Whether the row is valid so far and this column exists and has this kind; records the first fault.
  bool Takes(size_t column, millrace_kind kind);
  /// Copies the plugin's values, or records why it cannot.
  template <class T>
  void Append(size_t column, const T* values, size_t count, std::vector<T>* to);
  void Misfit(size_t column, std::string text);

  std::span<const millrace_column> descriptions_;
  std::vector<Column> columns_;
  millrace_sink sink_;
  size_t column_ = 0;
  std::string misfit_;
  size_t no_memory_for_ = 0;  ///< number of values; 0: no allocation failed
};

}  // namespace millrace
