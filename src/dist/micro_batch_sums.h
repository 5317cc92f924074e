#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace millrace {

/// The gradient of a dense parameter, or a part of it.
struct DenseValues {
  std::vector<float> values;

  void Add(const DenseValues& other);
};

/// The gradients of rows of a table or a matrix: `width` floats for each key. Keys ascend, and each occurs once.
struct RowValues {
  std::vector<uint64_t> keys;
  std::vector<float> values;
  size_t width = 0;

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
template <class Values>
class MicroBatchSums {
 public:
  struct Piece {
    int first = 0;  ///< micro-batches [first, first + count)
    int count = 1;
    bool has_values = false;  ///< false: nothing
    Values values;
  };

  /// The piece behind the last one, which ends where this begins; the first one may begin anywhere.
  void Append(Piece piece) {
    pieces_.push_back(std::move(piece));
    while (pieces_.size() > 1 && AreSiblings(pieces_[pieces_.size() - 2], pieces_.back())) AddLast();
  }
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// The sum of all; null: nothing. Good until the next call.
  Values* Total() {
    while (pieces_.size() > 1) AddLast();
    return pieces_.empty() || !pieces_[0].has_values ? nullptr : &pieces_[0].values;
  }
  void Clear() { pieces_.clear(); }

 private:
  static bool AreSiblings(const Piece& left, const Piece& right) {
    return left.count == right.count && left.first % (2 * left.count) == 0;
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
      left.values = std::move(right.values);
    }
    left.has_values = true;
  }

  std::vector<Piece> pieces_;
};

/// What a gradient that names rows any number of times comes to: the values of equal keys are added in their order.
RowValues SumEqualKeys(std::span<const uint64_t> keys, const float* values, size_t width);

}  // namespace millrace
