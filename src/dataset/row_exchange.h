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

/// Which stream has a row after a shuffle over ranks: a hash of the seed and what `by` says.
struct RowTargets {
  enum class By : uint8_t {
    kPlace,  ///< its file and line
    kName,   ///< its ins_id: rows of a name meet in a stream
    kUid,    ///< the first id of uid_slot: rows of a user meet; one without goes by its place
  };
  By by = By::kPlace;
  SlotId uid_slot = 0;
  uint64_t seed = 1;
  int streams = 1;

  int StreamOf(const RowLayout& layout, const uint8_t* row, const RowOrigin& origin) const;
};

/// A shuffle over ranks, and how its rows travel.
struct RowShuffle {
  RankGroup* ranks = nullptr;
  RowTargets targets;
  int64_t most_rows = 0;                 ///< that a rank sends to another in a round; 0: as many as most_bytes hold
  size_t most_bytes = size_t{64} << 20;  ///< that a rank sends in a round; a row more where one is longer
  std::chrono::milliseconds pause_of_rounds{0};  ///< between two rounds
};

/// Gives the rows of all ranks' streams to the streams that `shuffle` says, those of this rank to `streams`: streams
/// [first, first + streams.size()) of the job, of which this rank has its part (RankGroup::ShareOf). Each has
/// then rows in the order of their places, (file, line), whatever the number of ranks. A collective, which all ranks
/// enter whether or not their streams are loaded: a failure of one, and a stop request, is all ranks'.
///
/// Stream s has loaded file s, s + all streams, ... of `files`. Holds, beyond the rows themselves, those of one stream
/// and most_bytes to go out and to come in; what a stream had is released once it is sent.
///
/// `counters` gets what grouping the rows came to. After a failure streams may hold nothing.
Status ExchangeRows(const RowShuffle& shuffle, std::span<InMemoryDataset* const> streams, int first,
                    const std::vector<std::string>& files, std::map<std::string, int64_t>* counters,
                    const std::stop_token& stop);

}  // namespace millrace
