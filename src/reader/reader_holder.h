#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "reader/reader.h"

namespace millrace {

/// The result of reading past the last item.
enum class EndOfData : uint8_t {
  kError,  ///< kNotFound, for programs that call HasNext first
  kEmpty,  ///< ok, with no tensors
};

/// The position of a reader, as stored in a checkpoint.
struct ReaderPosition {
  uint64_t resets = 0;  ///< ReInit calls since creation
  uint64_t items = 0;   ///< items since the last ReInit
  friend bool operator==(const ReaderPosition&, const ReaderPosition&) = default;
};

/// Holds a variable's reader of any kind.
///
/// Empty until an operator creates the reader. A decorating operator then takes it for its own reader, and only that
/// one can be read. Thread-safe: readers of one variable take turns. Functions that need the reader fail with
/// kInvalidConfig if none was created or it was taken.
class ReaderHolder {
 public:
  ReaderHolder() = default;
  ReaderHolder(const ReaderHolder&) = delete;
  ReaderHolder& operator=(const ReaderHolder&) = delete;

  /// Whether an operator created a reader here, even if it was taken: creation runs once.
  bool made() const;
  /// Stores the reader. `creation` identifies the operator that created it. CHECKs !made().
  void Hold(std::unique_ptr<ReaderBase> reader, std::string creation);
  /// Fails with kInvalidConfig unless `creation` created the reader.
  Status CheckMadeBy(const std::string& creation) const;
  /// Removes the reader for use by variable `by`. Fails as stated for the class.
  Result<std::unique_ptr<ReaderBase>> Take(const std::string& by);

  /// Reads the next item, or the result `end` at the end. Fails like ReaderBase::ReadNext, with kBadData for a
  /// non-finite item if only_finite is set, and as stated for the class.
  Status ReadNext(std::vector<LoDTensor>* out, EndOfData end, const std::stop_token& stop);
  /// Whether ReadNext rejects items with NaN or infinite floats, for training; off by default.
  void set_only_finite(bool only_finite);
  /// Marks an output that is looked up in a table, so its files must not contain negative values. While a reader is
  /// being read, this takes effect at the next restart.
  void MarkIds(size_t output);
  /// Fails like ReaderBase::HasNext, and as stated for the class.
  Result<bool> HasNext(const std::stop_token& stop);
  /// Fails like ReaderBase::ReInit, and as stated for the class.
  Status ReInit();
  /// Fails as stated for the class.
  Result<std::vector<TensorSpec>> shapes() const;

  // The functions below do not wait for a reading thread, which can block on input.
  ReaderPosition position() const { return {resets_, read_}; }
  /// Whether ReadNext found no item and the reader was not restarted since.
  bool is_at_end() const { return is_at_end_; }
  /// Items, and rows of their first tensors (sequences with a LoD), read since creation.
  int64_t items() const { return items_; }
  int64_t rows() const { return rows_; }
  /// Moves a new reader to `position` by restarting and reading as often. Exact only for readers with a repeatable
  /// order: one prefetch thread. Fails like ReInit and ReadNext, kNotFound if there are fewer items.
  Status MoveTo(const ReaderPosition& position, const std::stop_token& stop);

 private:
  /// Fails as stated for the class.
  Status CheckHolds() const;

  mutable std::mutex mutex_;
  std::unique_ptr<ReaderBase> reader_;
  std::string creation_;
  std::string taken_by_;
  std::atomic<uint64_t> resets_{0};  ///< these atomics are written only with the mutex held
  std::atomic<uint64_t> read_{0};    ///< items since the last ReInit
  std::atomic<bool> is_at_end_{false};
  bool is_begun_ = false;  ///< read or asked for items since creation or restart
  bool only_finite_ = false;
  std::set<size_t> ids_;  ///< outputs passed to MarkIds
  std::atomic<int64_t> items_{0};
  std::atomic<int64_t> rows_{0};
};

/// Name and position of a reader variable.
struct ReaderState {
  std::string name;
  ReaderPosition position;
};

/// Totals of readers since their creation.
struct ReaderCounts {
  int64_t items = 0;
  int64_t rows = 0;

  void Add(const ReaderHolder& reader) {
    items += reader.items();
    rows += reader.rows();
  }
};

}  // namespace millrace
