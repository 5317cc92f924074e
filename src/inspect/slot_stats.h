#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_schema.h"
#include "features/exact_sum.h"
#include "inspect/cardinality.h"

namespace millrace {

class SlotBatch;

/// Statistics of one slot over all rows seen.
struct SlotStats {
  explicit SlotStats(size_t exact_ids) : ids(exact_ids) {}

  int64_t covered_rows = 0;  ///< rows with a value other than 0
  int64_t values = 0;
  int64_t zeros = 0;
  std::map<uint64_t, int64_t> lengths;  ///< rows by number of values; above 16, rounded up to a power of two
  IdCounts ids;                         ///< for uint64 slots
  int64_t non_finite = 0;               ///< for float slots, like all below, which exclude these values
  double minimum = 0;
  double maximum = 0;
  ExactSum sum;
  ExactSum squares;
};

/// Collects statistics of every used slot from batches. One thread; memory is bounded by `exact_ids` ids per slot.
class DatasetStats {
 public:
  /// `label` is the slot whose positive values are clicks; empty or unused: no label rates.
  DatasetStats(const SlotSchema& schema, std::string_view label, size_t exact_ids);

  void Add(const SlotBatch& batch);

  int64_t rows() const { return rows_; }
  const SlotStats& slot(SlotId id) const { return slots_[static_cast<size_t>(id)]; }
  /// Fraction of rows with a positive label; nullopt without a label slot or rows.
  std::optional<double> label_rate() const;

  /// {"rows":n,"label":"NAME","label_rate":r,"slots":{"NAME":{...}}} on one line, without a newline.
  std::string AsJson(size_t top) const;
  /// The same as readable text.
  std::string AsTable(size_t top) const;

 private:
  void ReadClicks(const SlotBatch& batch);
  void AddSlot(const SlotBatch& batch, const SlotSpec& slot);

  const SlotSchema* schema_;
  SlotId label_;
  std::vector<SlotStats> slots_;
  int64_t rows_ = 0;
  int64_t clicks_ = 0;
  int64_t odd_labels_ = 0;     // neither 0 nor 1
  std::vector<bool> clicked_;  // in the current batch
};

}  // namespace millrace
