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

/// What reading past the last item is.
enum class EndOfData : uint8_t {
  kError,  ///< kNotFound: a program asks HasNext first
  kEmpty,  ///< ok, with no tensors
};

/// How far a reader was read: what a checkpoint keeps of it.
struct ReaderPosition {
  uint64_t resets = 0;  ///< ReInit since it was made
  uint64_t items = 0;   ///< ReadNext since the last ReInit
  friend bool operator==(const ReaderPosition&, const ReaderPosition&) = default;
};

/// A variable's reader, whatever its kind.
///
/// Empty until an operator makes the reader; a decorating operator then takes it away for the reader that it makes,
/// and from there on only that one can be read. Thread-safe: readers of one variable take turns.
class ReaderHolder {
 public:
  ReaderHolder() = default;
  ReaderHolder(const ReaderHolder&) = delete;
  ReaderHolder& operator=(const ReaderHolder&) = delete;

  /// Whether an operator made a reader here, taken away or not: creation runs once.
  bool made() const;
  /// Puts the reader here, which `creation` made: whatever tells its operator from others. Only when !made() (CHECK).
  void Hold(std::unique_ptr<ReaderBase> reader, std::string creation);
  /// kInvalidConfig unless the reader was made by `creation`.
  Status CheckMadeBy(const std::string& creation) const;
  /// Takes the reader away for variable `by`.
  Result<std::unique_ptr<ReaderBase>> Take(const std::string& by);

  /// The next item, or what `end` says when there is none. kBadData for one that is not only_finite.
  Status ReadNext(std::vector<LoDTensor>* out, EndOfData end, const std::stop_token& stop);
  /// Whether ReadNext refuses an item with floats that are NaN or infinite, for who trains by it; not by default.
  void set_only_finite(bool only_finite);
  /// Says that a table is asked for the values of an output, whose files then may hold none below 0. Of a reader that
  /// is being read, from when it is started over.
  void MarkIds(size_t output);
  Result<bool> HasNext(const std::stop_token& stop);
  Status ReInit();
  Result<std::vector<TensorSpec>> shapes() const;

  // These never wait for a thread that reads, which may wait for data.
  ReaderPosition position() const { return {resets_, read_}; }
  /// Whether ReadNext found no item, and nothing started the reader over since.
  bool is_at_end() const { return is_at_end_; }
  /// Items, and rows of their first tensors (sequences of one with a LoD), that were read since it was made.
  int64_t items() const { return items_; }
  int64_t rows() const { return rows_; }
  /// Brings a fresh reader to where another one stood, by starting over and reading as often. Exact for readers whose
  /// order repeats: with one prefetch thread.
  Status MoveTo(const ReaderPosition& position, const std::stop_token& stop);

 private:
  /// kInvalidConfig when there is no reader to use.
  Status CheckHolds() const;

  mutable std::mutex mutex_;
  std::unique_ptr<ReaderBase> reader_;
  std::string creation_;
  std::string taken_by_;
  std::atomic<uint64_t> resets_{0};  ///< written, as those below, by the thread that holds the mutex
  std::atomic<uint64_t> read_{0};    ///< items since the last of them
  std::atomic<bool> is_at_end_{false};
  bool is_begun_ = false;  ///< something was read, or asked for, since the reader was made or started over
  bool only_finite_ = false;
  std::set<size_t> ids_;  ///< outputs that MarkIds said
  std::atomic<int64_t> items_{0};
  std::atomic<int64_t> rows_{0};
};

/// Where a reader variable stood.
struct ReaderState {
  std::string name;
  ReaderPosition position;
};

/// What readers have delivered since they were made.
struct ReaderCounts {
  int64_t items = 0;
  int64_t rows = 0;

  void Add(const ReaderHolder& reader) {
    items += reader.items();
    rows += reader.rows();
  }
};

}  // namespace millrace
