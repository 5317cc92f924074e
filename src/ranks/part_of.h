#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace millrace {

/// Of `count` things in a row those of rank `rank` among `ranks`: [first, second). Each rank has as many as others
/// have, or one more.
inline std::pair<size_t, size_t> PartOf(size_t count, int rank, int ranks) {
  const auto n = static_cast<size_t>(ranks);
  const auto r = static_cast<size_t>(rank);
  return {count * r / n, count * (r + 1) / n};
}
template <class T>
std::span<T> PartOf(std::span<T> all, int rank, int ranks) {
  const auto [begin, end] = PartOf(all.size(), rank, ranks);
  return all.subspan(begin, end - begin);
}

}  // namespace millrace
