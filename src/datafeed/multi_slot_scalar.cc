#include "datafeed/multi_slot_scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/harmless_text.h"
#include "core/numbers.h"
#include "core/shortened.h"
#include "datafeed/column_sink.h"
#include "datafeed/log_key.h"
#include "datafeed/put_row.h"
#include "datafeed/row_sink.h"

namespace millrace {
namespace {

constexpr size_t kSnippetSize = 40;

// C's isspace without '\n', which ends lines.
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// The token, shortened and with control characters escaped.
std::string Shown(std::string_view token) {
  return Harmless(StartOf(token, kSnippetSize)) + (token.size() > kSnippetSize ? "..." : "");
}

template <class Sink>
class LineReader {
 public:
  LineReader(const SlotSchema& schema, const MultiSlotOptions& options, std::string_view line, Sink& sink,
             LineError& error)
      : schema_(schema), options_(options), line_(line), sink_(sink), error_(error) {}

  // False for a bad line; error_ has the reason.
  bool Read() {
    if (const size_t nul = line_.find('\0'); nul != std::string_view::npos) {
      at_ = nul;
      return Fail(LineErrorKind::kNulByte, "", "text without NUL bytes", line_.substr(nul, 1));
    }
    if (!ReadPrefixes()) return false;
    size_t number = 0;
    for (const SlotSpec& slot : schema_.all()) {
      if (!ReadSlot(slot, ++number)) return false;
    }
    const std::string_view trailing = NextToken();
    if (trailing.empty()) return true;
    if (!options_.ignore_trailing) {
      return Fail(LineErrorKind::kTrailing, "",
                  "the end of the line after slot \"" + schema_.all().back().name + "\", the last of " +
                      std::to_string(schema_.all().size()),
                  trailing);
    }
    ++counters_.trailing_lines;
    return true;
  }

  const ValueCounters& counters() const { return counters_; }

 private:
  // The next run of non-space bytes, empty at the end of the line; at_ is its first byte.
  std::string_view NextToken() {
    at_ = next_;
    while (at_ < line_.size() && IsSpace(line_[at_])) ++at_;
    next_ = at_;
    while (next_ < line_.size() && !IsSpace(line_[next_])) ++next_;
    return line_.substr(at_, next_ - at_);
  }

  bool Fail(LineErrorKind kind, const std::string& slot, std::string expectation, std::string_view token) {
    error_.kind = kind;
    error_.column = at_ + 1;
    error_.slot = slot;
    error_.expectation = std::move(expectation);
    error_.snippet = Shown(token);
    return false;
  }

  bool ReadPrefixes() {
    std::string_view name;
    std::string_view content;
    if (options_.parse_ins_id && !ReadPrefix("the name of the example (parse_ins_id)", &name)) return false;
    if (options_.parse_content && !ReadPrefix("the content (parse_content)", &content)) return false;
    if (options_.parse_logkey && !ReadPrefix("the log key (parse_logkey)", &name)) return false;
    if (options_.parse_logkey && !ParseLogKey(name)) {
      return Fail(LineErrorKind::kBadPrefix, "", "a log key of 32 hex digits", name);
    }
    if (options_.parse_ins_id || options_.parse_logkey) sink_.SetInsId(name);
    if (options_.parse_content) sink_.SetContent(content);
    return true;
  }

  bool ReadPrefix(const std::string& what, std::string_view* into) {
    const std::string_view count = NextToken();
    uint64_t value = 0;
    if (ParseInteger(count, &value) != IntegerText::kOk || value != 1) {
      return Fail(LineErrorKind::kBadPrefix, "", "the count 1 before " + what, count);
    }
    const std::string_view text = NextToken();
    if (text.empty()) return Fail(LineErrorKind::kBadPrefix, "", what, text);
    *into = text;
    return true;
  }

  bool ReadSlot(const SlotSpec& slot, size_t number) {
    const std::string_view token = NextToken();
    if (token.empty()) {
      return Fail(LineErrorKind::kMissingValues, slot.name,
                  "a count (slot " + std::to_string(number) + " of " + std::to_string(schema_.all().size()) + ")",
                  token);
    }
    uint64_t count = 0;
    switch (ParseInteger(token, &count)) {
      case IntegerText::kOk: break;
      case IntegerText::kNegative:
        return Fail(LineErrorKind::kBadCount, slot.name, "a count that is not negative", token);
      case IntegerText::kOverflow: count = std::numeric_limits<uint64_t>::max(); break;
      case IntegerText::kNoNumber: return Fail(LineErrorKind::kBadCount, slot.name, "a count of values", token);
    }
    if (count > std::numeric_limits<int32_t>::max()) {
      return Fail(LineErrorKind::kBadCount, slot.name, "a count of at most 2147483647", token);
    }
    if (count == 0 && !options_.allow_empty_slots) {
      return Fail(LineErrorKind::kEmptySlot, slot.name, "at least one value (empty_slot: ALLOW takes empty slots)",
                  token);
    }
    if (slot.is_used && slot.is_dense && count != static_cast<uint64_t>(slot.width)) {
      return Fail(LineErrorKind::kWrongWidth, slot.name,
                  "the count " + std::to_string(slot.width) + ", as its shape says", token);
    }
    if (count == 0 && slot.is_used) ++counters_.empty_slots;
    return slot.type == SlotType::kUint64 ? ReadIds(slot, count) : ReadFloats(slot, count);
  }

  static std::string ValueNumber(uint64_t i, uint64_t count) {
    return "value " + std::to_string(i + 1) + " of " + std::to_string(count);
  }

  bool FailAtEnd(const SlotSpec& slot, uint64_t i, uint64_t count) {
    return Fail(LineErrorKind::kMissingValues, slot.name, ValueNumber(i, count), {});
  }

  bool ReadIds(const SlotSpec& slot, uint64_t count) {
    std::vector<uint64_t> ids;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view token = NextToken();
      if (token.empty()) return FailAtEnd(slot, i, count);
      uint64_t id = 0;
      switch (ParseInteger(token, &id)) {
        case IntegerText::kOk: break;
        case IntegerText::kNegative:
          return Fail(LineErrorKind::kNegativeId, slot.name, ValueNumber(i, count) + " to be an id without a minus",
                      token);
        case IntegerText::kOverflow:
          return Fail(LineErrorKind::kOverflow, slot.name,
                      ValueNumber(i, count) + " to be at most 18446744073709551615", token);
        case IntegerText::kNoNumber:
          return Fail(LineErrorKind::kBadValue, slot.name, ValueNumber(i, count) + " to be an unsigned integer", token);
      }
      ids.push_back(id);
    }
    if (!slot.is_used) return true;
    if (options_.drop_zeros && !slot.is_dense) {
      std::erase(ids, 0U);
      if (ids.empty() && count > 0) ids.push_back(0);
      counters_.zeros_dropped += static_cast<int64_t>(count - ids.size());
    }
    PutValues(slot.id, ids, sink_);
    return true;
  }

  bool ReadFloats(const SlotSpec& slot, uint64_t count) {
    std::vector<float> floats;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view token = NextToken();
      if (token.empty()) return FailAtEnd(slot, i, count);
      float value = 0;
      const FloatText text = ParseFloat(token, &value);
      if (text == FloatText::kNoNumber) {
        return Fail(LineErrorKind::kBadValue, slot.name, ValueNumber(i, count) + " to be a number", token);
      }
      floats.push_back(value);
      if (!slot.is_used) continue;
      if (text == FloatText::kOverflow) ++counters_.float_overflows;
      if (text == FloatText::kUnderflow) ++counters_.float_underflows;
      if (std::isfinite(value)) continue;
      ++counters_.non_finite;
      if (options_.reject_non_finite) {
        return Fail(LineErrorKind::kNonFinite, slot.name,
                    ValueNumber(i, count) + " to be finite (non_finite: ACCEPT takes others)", token);
      }
    }
    if (!slot.is_used) return true;
    if (options_.drop_zeros && !slot.is_dense) {
      // Paddle compares with a double.
      std::erase_if(floats, [](float v) { return std::fabs(static_cast<double>(v)) < 1e-6; });
      if (floats.empty() && count > 0) floats.push_back(0);
      counters_.zeros_dropped += static_cast<int64_t>(count - floats.size());
    }
    PutValues(slot.id, floats, sink_);
    return true;
  }

  const SlotSchema& schema_;
  const MultiSlotOptions& options_;
  const std::string_view line_;
  Sink& sink_;
  LineError& error_;
  ValueCounters counters_;
  size_t at_ = 0;
  size_t next_ = 0;
};

}  // namespace

template <class Sink>
LineResult ParseLineScalar(const SlotSchema& schema, const MultiSlotOptions& options, std::string_view line, Sink& sink,
                           ValueCounters& counters, LineError& error) {
  if (std::all_of(line.begin(), line.end(), IsSpace)) {
    ++counters.blank_lines;
    return LineResult::kBlank;
  }
  sink.BeginRow();
  LineReader<Sink> reader(schema, options, line, sink, error);
  if (!reader.Read()) {
    sink.Rollback();
    return LineResult::kBad;
  }
  sink.EndRow();
  counters += reader.counters();
  return LineResult::kRow;
}

template LineResult ParseLineScalar(const SlotSchema&, const MultiSlotOptions&, std::string_view, ColumnSink&,
                                    ValueCounters&, LineError&);
template LineResult ParseLineScalar(const SlotSchema&, const MultiSlotOptions&, std::string_view, RowSink&,
                                    ValueCounters&, LineError&);

}  // namespace millrace
