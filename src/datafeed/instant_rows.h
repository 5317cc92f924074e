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

  /// Consecutive rows and the offsets of their slots. Its vectors keep their capacity.
  struct Rows {
    int count = 0;
    size_t begin = 0;              ///< byte offset in the file
    size_t end = 0;                ///< byte offset in the file
    std::vector<uint32_t> starts;  ///< offset of row r's slot s from `begin`: starts[s * most + r]
    std::vector<size_t> values;    ///< number of values per slot in all rows
    int most = 0;
  };
  /// Finds up to `most` rows from byte `begin`, using only their counts; `row` is the number of the first, from 1.
  /// Fails with kBadData naming row, slot and byte; the returned rows can be copied without further checks.
  Status FindRows(std::span<const uint8_t> file, size_t begin, int most, uint64_t row, Rows* rows) const;

  /// Copies rows to an empty batch, column by column. Does not read past the end of `file`.
  void CopyRows(std::span<const uint8_t> file, const Rows& rows, SlotBatch* batch) const;

  /// Appends the encoded rows of a batch, used slots only. Fails with kBadData and the row's position in `files` if a
  /// slot has more values than a count can hold.
  Status Encode(const SlotBatch& batch, const std::vector<std::string>& files, std::string* bytes) const;

 private:
  struct SlotPlan {
    SlotId id = -1;              ///< -1: unused
    uint32_t least = 1;          ///< smallest count
    uint32_t most = UINT16_MAX;  ///< largest count
    uint32_t usual = 1;          ///< predicted count: the walk continues with it before the count is read
    uint32_t sizes = 0;          ///< 8-byte numbers before the values, included in the count
    uint32_t value_bytes = 8;
  };
  Status WrongRow(std::span<const uint8_t> file, size_t at, uint64_t row, size_t slot) const;

  std::vector<std::string> names_;
  std::vector<SlotPlan> plan_;
};

/// Guesses the format of a file that is not in this one, as the end of a message ("; it looks like text: ..."); empty
/// if unknown.
std::string LooksLike(std::span<const uint8_t> file);

}  // namespace millrace
