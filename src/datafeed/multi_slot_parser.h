#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "batch/slot_schema.h"
#include "datafeed/line_error.h"
#include "datafeed/multi_slot_options.h"

namespace millrace {

/// What became of a line.
enum class LineResult : uint8_t {
  kRow,    ///< the sink got a row
  kBlank,  ///< nothing but white space: counted
  kBad,    ///< the sink is as it was before; error() says why
};

/// Bytes that must be readable after the end of a line. LineBlock has them.
inline constexpr size_t kLinePadding = 32;

/// What the fast path needs to know of a slot, side by side for all slots of a line.
struct SlotPlan {
  SlotId id = -1;      ///< -1: not used
  uint32_t count = 0;  ///< that the line must have; 0: any
  bool is_float = false;
  bool drop_zeros = false;
  bool may_be_one_id = false;
};

/// Reads lines of MultiSlot text, `[1 ins_id] [1 content] [1 logkey] (count value{count})*`, into a sink.
///
/// `Sink` is ColumnSink or RowSink. Most lines take a path that reads eight digits at a time; whatever it does not know
/// (signs, exponents of many digits, errors) it leaves to the scalar parser, so both accept the same lines, give the
/// same bits and the same errors. Keeps a reference to the schema. One thread; allocates only in the sink and for
/// errors.
class MultiSlotParser {
 public:
  MultiSlotParser(const SlotSchema& schema, const MultiSlotOptions& options);

  /// `line` has no '\n'; the byte after it is '\n' or 0, and kLinePadding bytes after it may be read.
  template <class Sink>
  LineResult ParseLine(std::string_view line, Sink& sink);

  /// Says what was wrong with the last line for which ParseLine returned kBad.
  const LineError& error() const { return error_; }
  const ValueCounters& counters() const { return counters_; }

 private:
  const SlotSchema* schema_;
  MultiSlotOptions options_;
  std::vector<SlotPlan> plan_;
  ValueCounters counters_;
  LineError error_;
};

}  // namespace millrace
