#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "config/diagnostics.h"

namespace millrace {

/// The path of an element of a list: "layer[2]".
inline std::string ElementPath(std::string_view list, size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

/// Remembers where each field of a message was written, by path: "data_desc.multi_slot_desc.slots[2].name".
///
/// Elements of repeated fields carry their index; the path of a message is its name in the text, that of a scalar its
/// value; "}" below a message is its closing brace. A later Set of a path replaces the earlier one.
class FieldPositions {
 public:
  void Set(const std::string& path, SourceSpan span) { spans_[path] = span; }
  /// Forgets a path and everything below it.
  void Erase(std::string_view path);
  /// Gives a path and everything below it another path, in place of what that had.
  void Move(std::string_view from, std::string_view to);
  /// The place of a path (of a list, its first element), or of the nearest field above it that was written, or nowhere.
  SourceSpan Find(std::string_view path) const;
  /// Tells whether a field, or the first element of a list, was written.
  bool Has(std::string_view path) const { return spans_.contains(path) || spans_.contains(ElementPath(path, 0)); }

 private:
  std::map<std::string, SourceSpan, std::less<>> spans_;
};

}  // namespace millrace
