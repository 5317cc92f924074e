#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// What a click log is to look like. With the same options the bytes are the same, whatever `threads` is.
struct ClickLogOptions {
  enum class Format {
    kMultiSlot,  ///< "1 0 13 0.6931 ... 2 17 4 ...": what a data feed parses; a missing value is 0
    kRaw,        ///< "0<TAB>3<TAB>...<TAB>17,4<TAB>...": as a log comes in; a missing value is nothing
  };
  enum class Ids {
    kLocal,  ///< 1 to the slot's vocabulary; slots share numbers
    kHash64  ///< 64 random bits, other ones in each slot
  };

  uint64_t seed = 1;
  int64_t train_rows = 100000;
  int64_t test_rows = 0;
  int parts = 1;  ///< files of a split, of equal rows but for the last
  Format format = Format::kMultiSlot;
  Ids ids = Ids::kLocal;
  bool gzip = false;
  int threads = 1;

  int dense = 13;                ///< floats a row, in one dense slot; 0: no such slot
  int slots = 26;                ///< sparse slots C1 to Cn
  uint64_t vocabulary = 100000;  ///< ids of the largest slot; the smallest has 4
  double zipf = 1.05;            ///< exponent of the ids' power law
  int many_valued = 4;           ///< slots with 1 to max_length ids in a row
  int max_length = 10;
  double missing = 0.03;     ///< probability that a value of a row is missing
  double click_rate = 0.25;  ///< mean label that is aimed at
  double signal = 1;         ///< scales the logit: more makes a higher AUC attainable
  int fm_slots = 6;          ///< slots whose pairs interact
  int fm_dim = 3;
};

/// Every mistake in one kInvalidConfig, a line each.
Status Validate(const ClickLogOptions& options);

/// One sparse slot of the log.
struct SlotPlan {
  std::string name;  ///< "C1"
  uint64_t vocabulary = 0;
  int max_length = 1;
  bool in_fm = false;
};

/// The sparse slots of valid options. Sizes lie between 4 and the vocabulary, evenly by their logarithm; the smallest
/// of them interact, because pairs of rare ids could not be learnt.
std::vector<SlotPlan> PlanSlots(const ClickLogOptions& options);

}  // namespace millrace
