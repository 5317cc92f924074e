#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "datafeed/packed_rows.h"

namespace millrace {

/// The rows of a block of lines, and the position of its first line.
struct InputBlock {
  uint32_t file = 0;
  uint64_t first_line = 0;
  std::vector<RowHandle> rows;
};

/// The input channel of an InMemoryDataset: holds blocks of rows from their load or shuffle until a pass takes them
/// (docs/adr/0014).
///
/// Unbounded, because blocks are taken only after the last one has arrived. Thread-safe; one lock per block.
class InputChannel {
 public:
  void Put(InputBlock block);
  /// Sorts the blocks by position: threads put them in order of completion.
  void Sort();
  /// Removes and returns the rows of all blocks, block by block.
  std::vector<RowHandle> TakeAll();
  /// The rows that TakeAll would return.
  std::vector<RowHandle> Copy() const;

  int64_t rows() const;
  /// Memory of the row handles.
  size_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::vector<InputBlock> blocks_;
  size_t rows_ = 0;
};

}  // namespace millrace
