#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// Properties of a click log. Equal options give equal bytes, for any `threads`.
struct ClickLogOptions {
  enum class Format {
    kMultiSlot,  ///< "1 0 13 0.6931 ... 2 17 4 ...": for a data feed; a missing value is 0
    kRaw,        ///< "0<TAB>3<TAB>...<TAB>17,4<TAB>...": a raw log; a missing value is empty
  };
  enum class Ids {
    kLocal,  ///< 1 to the slot's vocabulary; slots share ids
    kHash64  ///< 64 random bits, different in each slot
  };

  uint64_t seed = 1;
  int64_t train_rows = 100000;
  int64_t test_rows = 0;
  int parts = 1;  ///< files per split, with equal rows except the last
  Format format = Format::kMultiSlot;
  Ids ids = Ids::kLocal;
  bool gzip = false;
  int threads = 1;

  int dense = 13;                ///< floats per row in one dense slot; 0: no such slot
  int slots = 26;                ///< sparse slots C1 to Cn
  uint64_t vocabulary = 100000;  ///< ids of the largest slot; the smallest has 4
  double zipf = 1.05;            ///< exponent of the ids' power law
  int many_valued = 4;           ///< slots with 1 to max_length ids per row
  int max_length = 10;
  double missing = 0.03;     ///< probability that a value of a row is missing
  double click_rate = 0.25;  ///< target for the mean label
  double signal = 1;         ///< scales the logit: larger values allow a higher AUC
  int fm_slots = 6;          ///< slots whose pairs interact
  int fm_dim = 3;
};

/// Fails with kInvalidConfig, one line per mistake.
Status Validate(const ClickLogOptions& options);

/// One sparse slot of the log.
struct SlotPlan {
  std::string name;  ///< "C1"
  uint64_t vocabulary = 0;
  int max_length = 1;
  bool in_fm = false;
};

/// The sparse slots for valid options. Sizes are between 4 and the vocabulary, evenly spaced on a log scale; the
/// smallest slots interact, because pairs of rare ids could not be learned.
std::vector<SlotPlan> PlanSlots(const ClickLogOptions& options);

}  // namespace millrace
