#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "core/status.h"
#include "datafeed/row_layout.h"
#include "dataset/in_memory_dataset.h"
#include "ranks/rank_group.h"

namespace millrace {

/// Assigns rows to streams in a shuffle over ranks, by a hash of the seed and the key `by`.
struct RowTargets {
  enum class By : uint8_t {
    kPlace,  ///< file and line
    kName,   ///< ins_id: rows with the same name go to one stream
    kUid,    ///< first id of uid_slot: rows of one user go to one stream; without an id, kPlace
  };
  By by = By::kPlace;
  SlotId uid_slot = 0;
  uint64_t seed = 1;
  int streams = 1;

  int StreamOf(const RowLayout& layout, const uint8_t* row, const RowOrigin& origin) const;
};

/// Settings of a shuffle over ranks.
struct RowShuffle {
  RankGroup* ranks = nullptr;
  RowTargets targets;
  int64_t most_rows = 0;                 ///< sent from one rank to another per round; 0: limited only by most_bytes
  size_t most_bytes = size_t{64} << 20;  ///< sent by a rank per round; exceeded only by a single longer row
  std::chrono::milliseconds pause_of_rounds{0};  ///< between two rounds
};

/// Redistributes the rows of all ranks' streams as `shuffle` says. `streams` receive this rank's part: streams [first,
/// first + streams.size()) of the job (RankGroup::ShareOf). Each stream then has rows in (file, line) order, for any
/// number of ranks.
///
/// Stream s has loaded files s, s + all streams, ... of `files`. Needs memory for the rows of one more stream and for
/// most_bytes in each direction; rows are released once sent. Adds counts of the grouping to `counters`.
///
/// Collective: all ranks call it even if their streams are not loaded. Fails on all ranks with the failure of any,
/// kCancelled after a stop request of any, kUnavailable if a rank is lost. After a failure streams may be empty.
Status ExchangeRows(const RowShuffle& shuffle, std::span<InMemoryDataset* const> streams, int first,
                    const std::vector<std::string>& files, std::map<std::string, int64_t>* counters,
                    const std::stop_token& stop);

}  // namespace millrace
