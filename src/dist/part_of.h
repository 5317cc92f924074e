#pragma once

#include <cstddef>
#include <utility>

namespace millrace {

/// Of `count` things in a row those of rank `rank` among `ranks`: [first, second). Each rank has as many as others
/// have, or one more.
inline std::pair<size_t, size_t> PartOf(size_t count, int rank, int ranks) {
  const auto n = static_cast<size_t>(ranks);
  const auto r = static_cast<size_t>(rank);
  return {count * r / n, count * (r + 1) / n};
}

}  // namespace millrace
