#include "core/name_numbers.h"

#include <algorithm>
#include <functional>

namespace millrace {
namespace {

constexpr size_t kLeastPlaces = 64;
constexpr size_t kBlockBytes = size_t{1} << 16;

}  // namespace

size_t NameNumbers::PlaceOf(std::string_view name, size_t hash) const {
  const size_t mask = places_.size() - 1;
  size_t place = hash & mask;
  for (; places_[place] != 0; place = (place + 1) & mask) {
    const Entry& entry = entries_[places_[place] - 1];
    if (entry.hash == hash && entry.name == name) break;
  }
  return place;
}

size_t NameNumbers::Add(std::string_view name) {
  if (2 * entries_.size() >= places_.size()) Grow();
  const size_t hash = std::hash<std::string_view>()(name);
  const size_t place = PlaceOf(name, hash);
  if (places_[place] == 0) {
    entries_.push_back({Keep(name), hash});
    places_[place] = static_cast<uint32_t>(entries_.size());
  }
  return places_[place] - 1;
}

size_t NameNumbers::Find(std::string_view name) const {
  if (places_.empty()) return size();
  const size_t place = PlaceOf(name, std::hash<std::string_view>()(name));
  return places_[place] == 0 ? size() : places_[place] - 1;
}

void NameNumbers::Grow() {
  places_.assign(std::max(kLeastPlaces, 2 * places_.size()), 0);
  const size_t mask = places_.size() - 1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t place = entries_[i].hash & mask;
    while (places_[place] != 0) place = (place + 1) & mask;
    places_[place] = static_cast<uint32_t>(i + 1);
  }
}

std::string_view NameNumbers::Keep(std::string_view name) {
  if (name.empty()) return {};
  if (name.size() > left_) {
    left_ = std::max(kBlockBytes, name.size());
    free_ = blocks_.emplace_back(new char[left_]).get();
  }
  const std::string_view kept(free_, name.copy(free_, name.size()));
  free_ += name.size();
  left_ -= name.size();
  return kept;
}

}  // namespace millrace
