#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace {

/// Floats that somebody else holds; those of a message need not lie as floats do.
class FloatView {
 public:
  FloatView(std::span<const float> floats)  // NOLINT(google-explicit-constructor): a view, as std::span is one
      : bytes_(reinterpret_cast<const char*>(floats.data()), floats.size_bytes()) {}
  explicit FloatView(std::string_view bytes) : bytes_(bytes) {}

  size_t size() const { return bytes_.size() / sizeof(float); }
  void CopyTo(float* to) const;
  void AddTo(float* sum) const;

 private:
  std::string_view bytes_;
};

/// The gradient of a dense parameter, or a part of it.
struct DenseValues {
  std::vector<float> values;

  void Take(const FloatView& from);
  void Add(const FloatView& other) { other.AddTo(values.data()); }
  void Add(const DenseValues& other) { Add(FloatView(other.values)); }
};

/// The gradients of rows of a table or a matrix: `width` floats for each key. Keys ascend, and each occurs once.
struct RowValues {
  std::vector<uint64_t> keys;
  std::vector<float> values;
  size_t width = 0;

  void clear() {
    keys.clear();
    values.clear();
  }
  /// Trades places: `from` has the buffers of this afterwards.
  void Take(RowValues& from) { std::swap(*this, from); }
  void Add(const RowValues& other);
};

/// Adds up what the micro-batches of a step have for one gradient, in an order that does not depend on which rank had
/// which of them.
///
/// The order is that of a binary tree over the numbers of the micro-batches: two neighbours first, then two such pairs,
/// and so on. A rank that has micro-batches [first, last) in a row can add what lies under one node by itself; what it
/// cannot add is left as pieces, which whoever has the pieces of all ranks, in order, adds on. Sums of floats depend on
/// their order alone, so the bytes are the same for any number of ranks.
///
/// A micro-batch may have nothing: its rank had no example left. Nothing and x is x.
///
/// Keeps the buffers of what was added on, or cleared, for what comes next.
template <class Values>
class MicroBatchSums {
 public:
  struct Piece {
    int first = 0;  ///< micro-batches [first, first + count)
    int count = 1;
    bool has_values = false;  ///< false: nothing
    Values values;
  };

  /// The piece [first, first + count) behind the last one, which ends where this begins; the first one may begin
  /// anywhere. `from` is what Values can Take and Add.
  template <class Source>
  void Append(int first, int count, Source&& from) {
    if (!pieces_.empty() && pieces_.back().has_values && AreSiblings(pieces_.back(), first, count)) {
      pieces_.back().values.Add(from);
      pieces_.back().count += count;
    } else {
      pieces_.push_back({first, count, true, Spare()});
      pieces_.back().values.Take(from);
    }
    AddSiblings();
  }
  void AppendNothing(int first, int count) {
    pieces_.push_back({first, count, false, {}});
    AddSiblings();
  }
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// The sum of all; null: nothing. Good until the next call.
  Values* Total() {
    while (pieces_.size() > 1) AddLast();
    return pieces_.empty() || !pieces_[0].has_values ? nullptr : &pieces_[0].values;
  }
  void Clear() {
    for (Piece& piece : pieces_) Release(&piece);
    pieces_.clear();
  }

 private:
  static bool AreSiblings(const Piece& left, int first, int count) {
    return left.count == count && left.first + left.count == first && left.first % (2 * count) == 0;
  }
  void AddSiblings() {
    while (pieces_.size() > 1 && AreSiblings(pieces_[pieces_.size() - 2], pieces_.back().first, pieces_.back().count)) {
      AddLast();
    }
  }
  void AddLast() {
    Piece right = std::move(pieces_.back());
    pieces_.pop_back();
    Piece& left = pieces_.back();
    left.count += right.count;
    if (!right.has_values) return;
    if (left.has_values) {
      left.values.Add(right.values);
    } else {
      std::swap(left.values, right.values);
    }
    left.has_values = true;
    Release(&right);
  }
  Values Spare() {
    if (spare_.empty()) return {};
    Values values = std::move(spare_.back());
    spare_.pop_back();
    return values;
  }
  void Release(Piece* piece) {
    if (piece->values.values.capacity() > 0) spare_.push_back(std::move(piece->values));
  }

  std::vector<Piece> pieces_;
  std::vector<Values> spare_;
};

/// What a gradient that names rows any number of times comes to: the values of equal keys are added in their order.
void SumEqualKeys(std::span<const uint64_t> keys, const float* values, size_t width, RowValues* sum);

}  // namespace millrace
