#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugin/plugin_abi.h"

namespace millrace {

/// Gathers the values that a plugin of the C tier gives for one row, column by column. One thread; warm, it allocates
/// nothing.
class CRowValues {
 public:
  /// `columns` must outlive it.
  explicit CRowValues(std::span<const millrace_column> columns);
  CRowValues(const CRowValues&) = delete;
  CRowValues& operator=(const CRowValues&) = delete;

  /// What the plugin calls. It refers to this object.
  const millrace_sink& sink() const { return sink_; }
  /// Forgets the row; that memory ran out stays.
  void Clear();
  /// Whether every column got what it takes; otherwise column() and misfit() say which one did not, and why.
  bool Check();
  size_t column() const { return column_; }
  /// "expected 2 values, found 3".
  const std::string& misfit() const { return misfit_; }
  /// "no memory for 2147483648 values of a row" of column(), once there was none; empty: there was. Nothing is taken
  /// from then on, which would ask the system for the same again at every call.
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
  /// Whether the row is still in order, and this column exists and is of this kind; remembers the first that is not.
  bool Takes(size_t column, millrace_kind kind);
  /// Copies what the plugin gives, or remembers why it cannot.
  template <class T>
  void Append(size_t column, const T* values, size_t count, std::vector<T>* to);
  void Misfit(size_t column, std::string text);

  std::span<const millrace_column> descriptions_;
  std::vector<Column> columns_;
  millrace_sink sink_;
  size_t column_ = 0;
  std::string misfit_;
  size_t no_memory_for_ = 0;  ///< values; 0: there was memory
};

}  // namespace millrace
