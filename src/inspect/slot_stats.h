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

/// What one slot holds, over all rows seen.
struct SlotStats {
  explicit SlotStats(size_t exact_ids) : ids(exact_ids) {}

  int64_t covered_rows = 0;  ///< rows with a value other than 0
  int64_t values = 0;
  int64_t zeros = 0;
  std::map<uint64_t, int64_t> lengths;  ///< rows by their number of values; above 16 the next power of two
  IdCounts ids;                         ///< of uint64 slots
  int64_t non_finite = 0;               ///< of float slots, as all below; left out of these
  double minimum = 0;
  double maximum = 0;
  ExactSum sum;
  ExactSum squares;
};

/// Gathers statistics of every used slot from batches. One thread; memory is bounded by `exact_ids` ids a slot.
class DatasetStats {
 public:
  /// `label` names the slot whose positive values are clicks; empty, or not a used slot: no label rates.
  DatasetStats(const SlotSchema& schema, std::string_view label, size_t exact_ids);

  void Add(const SlotBatch& batch);

  int64_t rows() const { return rows_; }
  const SlotStats& slot(SlotId id) const { return slots_[static_cast<size_t>(id)]; }
  /// Share of rows with a positive label; nothing without a label slot or rows.
  std::optional<double> label_rate() const;

  /// {"rows":n,"label":"NAME","label_rate":r,"slots":{"NAME":{...}}} on one line, without a newline.
  std::string AsJson(size_t top) const;
  /// The same for people.
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
  std::vector<bool> clicked_;  // of the current batch
};

}  // namespace millrace
