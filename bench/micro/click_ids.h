#pragma once

#include <cstdint>
#include <vector>

namespace millrace {

/// Ids of one batch, slot after slot, as the Criteo-like log of the shared benchmark has them: 26 slots, Zipf 1.05,
/// four of them with several ids, 41.5 ids a row.
struct ClickIds {
  std::vector<std::vector<uint64_t>> ids;
  std::vector<std::vector<uint32_t>> offsets;
};

/// Rows of each slot's vocabulary.
const std::vector<int64_t>& ClickVocabularies();

/// `count` batches of `rows` rows, the same at every call.
std::vector<ClickIds> MakeClickIds(int count, int rows);

}  // namespace millrace
