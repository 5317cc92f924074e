#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "datafeed/packed_rows.h"

namespace millrace {

/// The rows of a block of lines, and where its first line stands.
struct InputBlock {
  uint32_t file = 0;
  uint64_t first_line = 0;
  std::vector<RowHandle> rows;
};

/// The input channel of an InMemoryDataset: holds blocks of rows from the time that a thread loads them, or a shuffle
/// brings them, to the pass that takes them (docs/adr/0014).
///
/// It takes all that comes, as nobody takes a block before the last one is there. Thread-safe; a lock a block.
class InputChannel {
 public:
  void Put(InputBlock block);
  /// Brings the blocks into the order of their places: threads put them as they get done.
  void Sort();
  /// Takes the rows of all blocks, one block after another.
  std::vector<RowHandle> TakeAll();
  /// What TakeAll would give.
  std::vector<RowHandle> Copy() const;

  int64_t rows() const;
  /// That the handles of its rows take.
  size_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::vector<InputBlock> blocks_;
  size_t rows_ = 0;
};

}  // namespace millrace
