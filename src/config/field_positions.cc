#include "config/field_positions.h"

#include <algorithm>

namespace millrace {
namespace {

bool IsBelow(std::string_view path, std::string_view ancestor) {
  if (!path.starts_with(ancestor)) return false;
  return path.size() == ancestor.size() || path[ancestor.size()] == '.' || path[ancestor.size()] == '[';
}

}  // namespace

void FieldPositions::Erase(std::string_view path) {
  for (auto i = spans_.lower_bound(path); i != spans_.end() && i->first.starts_with(path);) {
    i = IsBelow(i->first, path) ? spans_.erase(i) : std::next(i);
  }
}

void FieldPositions::Move(std::string_view from, std::string_view to) {
  std::map<std::string, SourceSpan, std::less<>> moved;
  for (auto i = spans_.lower_bound(from); i != spans_.end() && i->first.starts_with(from); ++i) {
    if (IsBelow(i->first, from)) moved[std::string(to) + i->first.substr(from.size())] = i->second;
  }
  Erase(from);
  Erase(to);
  spans_.merge(moved);
}

SourceSpan FieldPositions::Find(std::string_view path) const {
  while (!path.empty()) {
    if (const auto found = spans_.find(path); found != spans_.end()) return found->second;
    if (const auto found = spans_.find(std::string(path) + "[0]"); found != spans_.end()) return found->second;
    const size_t cut = path.find_last_of(".[");
    path = path.substr(0, cut == std::string_view::npos ? 0 : cut);
  }
  const auto root = spans_.find(path);
  return root == spans_.end() ? SourceSpan{} : root->second;
}

}  // namespace millrace
