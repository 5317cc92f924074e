#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/rng.h"

namespace millrace {

/// Permutes `items` by `seed`, identically on every machine.
template <class T>
void Shuffle(std::vector<T>& items, uint64_t seed) {
  Rng rng(seed);
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.Below(i)]);
}

}  // namespace millrace
