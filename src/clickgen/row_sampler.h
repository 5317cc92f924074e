#pragma once

#include <cstdint>
#include <vector>

#include "clickgen/click_log_options.h"
#include "clickgen/zipf.h"
#include "core/rng.h"

namespace millrace {

/// One line of the log, and the probability from which its label was drawn.
struct ClickRow {
  bool clicked = false;
  double probability = 0;
  /// Raw counts; the model's feature is log(1 + count). -1: missing.
  std::vector<int> dense;
  /// Ids of slot s are at [ends[s - 1], ends[s]); none: missing.
  std::vector<uint64_t> ids;
  std::vector<uint32_t> ends;
};

/// Draws rows whose clicks follow a known distribution:
///
///     logit = bias + signal * (0.3 sum_slots mean_ids w[slot, id] + 0.25 sum_dense v[i] (log(1 + count) - 2.6)
///                              + 0.15 FM of the slots' mean vectors)
///
/// w, v and the FM's vectors are hashes of the seed, so no table is stored; weights of rare ids are smaller. A missing
/// count acts as 0, a missing id adds nothing, so the row contains everything that determines its label. Row n of split
/// s is a function of (options, s, n). Immutable, shared by any number of threads.
class RowSampler {
 public:
  /// Options must be valid. Draws 20,000 rows to find the bias for the target click rate.
  explicit RowSampler(const ClickLogOptions& options);

  /// Fills *row, whose buffers keep their capacity. `split` 0 is training, 1 is test.
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
    uint64_t multiplier;  // coprime with the vocabulary: id = 1 + rank * multiplier mod vocabulary
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
  std::vector<int> count_of_cell_;  // for uniform numbers in [i, i + 1) / size; -1: several
  double bias_ = 0;
};

}  // namespace millrace
