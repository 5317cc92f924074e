#pragma once

#include <cstdint>
#include <vector>

#include "clickgen/click_log_options.h"
#include "clickgen/zipf.h"
#include "core/rng.h"

namespace millrace {

/// One line of the log, and the probability that its label was drawn with.
struct ClickRow {
  bool clicked = false;
  double probability = 0;
  /// Counts, as a log has them; the model's feature is log(1 + count). -1: missing.
  std::vector<int> dense;
  /// Ids of slot s at [ends[s - 1], ends[s]); none: missing.
  std::vector<uint64_t> ids;
  std::vector<uint32_t> ends;
};

/// Draws rows whose clicks follow a known law:
///
///     logit = bias + signal * (0.3 sum_slots mean_ids w[slot, id] + 0.25 sum_dense v[i] (log(1 + count) - 2.6)
///                              + 0.15 FM of the slots' mean vectors)
///
/// w, v and the FM's vectors are hashes of the seed, so that no table is held; weights of rare ids are smaller. A
/// missing count acts as 0, a missing id adds nothing: everything that decides can be seen in the row.
/// Row n of split s is a function of (options, s, n). Immutable, shared by any number of threads.
class RowSampler {
 public:
  /// Options must be valid. Draws 20,000 rows to find the bias that gives the wanted click rate.
  explicit RowSampler(const ClickLogOptions& options);

  /// Fills *row, whose buffers keep their capacity. `split` 0 trains, 1 tests.
  void Sample(int split, int64_t number, ClickRow* row) const;

  const std::vector<SlotPlan>& slots() const { return slots_; }
  double bias() const { return bias_; }

 private:
  struct Drawn {
    uint64_t id;
    double weight;
  };
  struct Slot {
    Zipf rank;
    uint64_t multiplier;  // with the vocabulary no common divisor: id = 1 + rank * multiplier mod vocabulary
    uint64_t weight_key;
    uint64_t fm_key;
    std::vector<Drawn> frequent;      // the first ranks
    std::vector<double> frequent_fm;  // their FM vectors, if the slot is in the FM
  };
  // Sums over the slots of a row.
  struct FmSums {
    double mean[64];
    double squares;
  };
  int DrawCount(Rng& random) const;
  double DrawFeatures(Rng& random, ClickRow* row) const;
  double DrawSlot(size_t slot, Rng& random, ClickRow* row, FmSums* fm) const;
  Drawn DrawnOf(size_t slot, uint64_t rank) const;
  double FmWeight(size_t slot, uint64_t rank, size_t d) const;
  uint64_t IdOf(size_t slot, uint64_t rank) const;

  ClickLogOptions options_;
  std::vector<SlotPlan> slots_;
  std::vector<Slot> draws_;
  std::vector<double> dense_weights_;
  std::vector<double> features_;    // log(1 + count) by count
  std::vector<int> count_of_cell_;  // for uniform numbers of [i, i + 1) / size; -1: several
  double bias_ = 0;
};

}  // namespace millrace
