#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "batch/slot_schema.h"
#include "core/status.h"

namespace millrace {

/// Reads and writes rows as Paddle's MultiSlotFileInstantDataFeed has them (docs/formats/file_instant.md):
///
///     row = slot{all slots, in order}      slot = count:u16 [batch:u64] values
///
/// Little endian, nothing between rows. A dense slot has the size of the batch that its row belongs to before its
/// values, and its count includes that number. Values are 64-bit ids or 32-bit floats.
///
/// Immutable; any number of threads.
class InstantFormat {
 public:
  /// `allow_empty`: a sparse slot may have the count 0.
  InstantFormat(const SlotSchema& schema, bool allow_empty);

  /// Whole rows that stand one after another, and where their slots begin. Its vectors keep their capacity.
  struct Rows {
    int count = 0;
    size_t begin = 0;              ///< bytes of the file
    size_t end = 0;                ///< likewise
    std::vector<uint32_t> starts;  ///< of row r's slot s, from `begin`: starts[s * most + r]
    std::vector<size_t> values;    ///< that each slot has in all rows
    int most = 0;
  };
  /// Finds up to `most` rows from byte `begin` on, by their counts alone; `row` is the number of the first one, from 1.
  /// kBadData says row, slot and byte of what is wrong: rows that it gives back may be copied without further checks.
  Status FindRows(std::span<const uint8_t> file, size_t begin, int most, uint64_t row, Rows* rows) const;

  /// Copies rows to an empty batch, column by column. Reads no byte behind the end of `file`.
  void CopyRows(std::span<const uint8_t> file, const Rows& rows, SlotBatch* batch) const;

  /// Appends the bytes of a batch's rows, used slots alone. kBadData, with the row's place in `files`, for a slot with
  /// more values than a count can say.
  Status Encode(const SlotBatch& batch, const std::vector<std::string>& files, std::string* bytes) const;

 private:
  struct SlotPlan {
    SlotId id = -1;              ///< -1: not used
    uint32_t least = 1;          ///< smallest count
    uint32_t most = UINT16_MAX;  ///< largest count
    uint32_t usual = 1;          ///< count of most rows: the walk goes on with it before the count is read
    uint32_t sizes = 0;          ///< numbers of 8 bytes before the values, which count
    uint32_t value_bytes = 8;
  };
  Status WrongRow(std::span<const uint8_t> file, size_t at, uint64_t row, size_t slot) const;

  std::vector<std::string> names_;
  std::vector<SlotPlan> plan_;
};

/// What a file looks like that is not in this format, as the end of a message ("; it looks like text: ..."), or
/// nothing.
std::string LooksLike(std::span<const uint8_t> file);

}  // namespace millrace
