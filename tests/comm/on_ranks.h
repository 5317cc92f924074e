#pragma once

#include <cstddef>
#include <thread>
#include <type_traits>
#include <vector>

#include "comm/local_cluster.h"

namespace millrace {

/// Runs `rank(communicator)` as each rank of a cluster, on threads that have ended when it returns. What each came to,
/// by rank, where it is anything.
template <class Rank>
auto OnRanks(const LocalCluster& cluster, const Rank& rank) {
  using Value = std::invoke_result_t<const Rank&, Communicator&>;
  if constexpr (std::is_void_v<Value>) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < cluster.size(); ++r) threads.emplace_back([&, r] { rank(cluster.rank(r)); });
  } else {
    std::vector<Value> values(static_cast<size_t>(cluster.size()));
    OnRanks(cluster, [&](Communicator& communicator) {
      Value& value = values[static_cast<size_t>(communicator.rank())];  // before others are lost, and numbers change
      value = rank(communicator);
    });
    return values;
  }
}

/// The same on a cluster of `size` ranks.
template <class Rank>
auto OnRanks(int size, const Rank& rank) {
  return OnRanks(LocalCluster(size), rank);
}

}  // namespace millrace
