#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "batch/slot_schema.h"
#include "datafeed/line_error.h"
#include "datafeed/multi_slot_options.h"

namespace millrace {

/// The result of parsing a line.
enum class LineResult : uint8_t {
  kRow,    ///< the sink received a row
  kBlank,  ///< only white space: counted
  kBad,    ///< the sink is unchanged; error() has the reason
};

/// Bytes that must be readable after the end of a line. LineBlock provides them.
inline constexpr size_t kLinePadding = 32;

/// A slot's data for the fast path, stored contiguously for all slots.
struct SlotPlan {
  SlotId id = -1;      ///< -1: unused
  uint32_t count = 0;  ///< required number of values; 0: any
  bool is_float = false;
  bool drop_zeros = false;
  bool may_be_one_id = false;
};

/// Parses lines of MultiSlot text, `[1 ins_id] [1 content] [1 logkey] (count value{count})*`, into a sink.
///
/// `Sink` is ColumnSink or RowSink. A fast path reads eight digits at a time and leaves rare input (signs, long
/// exponents, errors) to the scalar parser, so both accept the same lines and give the same bits and errors. Keeps a
/// reference to the schema. One thread; allocates only in the sink and for errors.
class MultiSlotParser {
 public:
  MultiSlotParser(const SlotSchema& schema, const MultiSlotOptions& options);

  /// `line` has no '\n'; the byte after it is '\n' or 0, and kLinePadding bytes after it may be read.
  template <class Sink>
  LineResult ParseLine(std::string_view line, Sink& sink);

  /// The error of the last line for which ParseLine returned kBad.
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
