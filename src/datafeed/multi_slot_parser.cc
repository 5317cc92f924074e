#include "datafeed/multi_slot_parser.h"

#include <cmath>
#include <span>

#include "core/digits.h"
#include "core/numbers.h"
#include "datafeed/column_sink.h"
#include "datafeed/log_key.h"
#include "datafeed/multi_slot_scalar.h"
#include "datafeed/row_sink.h"

namespace millrace {
namespace {

bool IsSeparator(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool EndsToken(char c) { return IsSeparator(c) || c == '\n' || c == '\0'; }

// The fast path. Every function returns the byte after its input, or null to pass the whole line to the scalar parser.
template <class Sink>
class FastLine {
 public:
  FastLine(const MultiSlotOptions& options, const char* end, Sink& sink) : options_(options), end_(end), sink_(sink) {}

  const char* Read(std::span<const SlotPlan> slots, const char* at) {
    while (IsSeparator(*at)) ++at;
    if (options_.parse_ins_id || options_.parse_content || options_.parse_logkey) {
      at = ReadPrefixes(at);
      if (at == nullptr) return nullptr;
    }
    for (const SlotPlan& slot : slots) {
      if (slot.may_be_one_id && at[0] == '1' && at[1] == ' ') [[likely]] {
        const char* const next = ReadOneId(slot, at + 2);
        if (next != nullptr) [[likely]] {
          at = next;
          continue;
        }
      }
      uint64_t count = 0;
      at = ReadCount(at, &count);
      // A value needs at least two bytes: separator and digit.
      if (at == nullptr || count == 0 || count > static_cast<uint64_t>(end_ - at) / 2) return nullptr;
      if (slot.count != 0 && count != slot.count) return nullptr;
      at = slot.is_float ? ReadFloats(slot, count, at) : ReadIds(slot, count, at);
      if (at == nullptr) return nullptr;
      at = SkipSeparators(at);
      if (at == nullptr) return nullptr;
    }
    return at == end_ ? at : nullptr;
  }

  const ValueCounters& counters() const { return counters_; }

 private:
  // Null without a separator before the end of the line.
  const char* SkipSeparators(const char* at) const {
    if (*at == ' ') [[likely]] {
      ++at;
      if (static_cast<unsigned char>(*at) > ' ') [[likely]]
        return at;
    } else if (at == end_) {
      return at;
    } else if (!IsSeparator(*at)) {
      return nullptr;
    }
    while (IsSeparator(*at)) ++at;
    return at;
  }

  // Most counts have one digit, which branch prediction exploits.
  static const char* ReadCount(const char* at, uint64_t* count) {
    if (at[1] == ' ' && at[0] >= '0' && at[0] <= '9') [[likely]] {
      *count = static_cast<uint64_t>(at[0] - '0');
      return at + 1;
    }
    return ReadUint64(at, count);
  }

  const char* ReadPrefixes(const char* at) {
    std::string_view name;
    std::string_view content;
    if (options_.parse_ins_id && (at = ReadPrefix(at, &name)) == nullptr) return nullptr;
    if (options_.parse_content && (at = ReadPrefix(at, &content)) == nullptr) return nullptr;
    if (options_.parse_logkey && ((at = ReadPrefix(at, &name)) == nullptr || !ParseLogKey(name))) return nullptr;
    if (options_.parse_ins_id || options_.parse_logkey) sink_.SetInsId(name);
    if (options_.parse_content) sink_.SetContent(content);
    return at;
  }

  static const char* ReadPrefix(const char* at, std::string_view* text) {
    if (at[0] != '1' || at[1] != ' ') return nullptr;
    const char* const begin = at + 2;
    at = begin;
    while (static_cast<unsigned char>(*at) > ' ') ++at;
    if (at == begin || *at != ' ') return nullptr;
    *text = {begin, static_cast<size_t>(at - begin)};
    while (*at == ' ') ++at;
    return at;
  }

  // The most common slot: one short id, not at the end of the line. Null for another one.
  const char* ReadOneId(const SlotPlan& slot, const char* at) {
    const DigitRun run = ReadDigits(at);
    if (run.digits == 0 || run.digits == 8) [[unlikely]]
      return nullptr;
    at += run.digits;
    if (at[0] != ' ' || static_cast<unsigned char>(at[1]) <= ' ') [[unlikely]]
      return nullptr;
    sink_.PutOneId(slot.id, run.value);
    return at + 1;
  }

  const char* ReadIds(const SlotPlan& slot, uint64_t count, const char* at) {
    if (slot.id < 0) {
      uint64_t ignored = 0;
      for (uint64_t i = 0; i < count; ++i) {
        at = ReadId(at, &ignored);
        if (at == nullptr) return nullptr;
      }
      return at;
    }
    uint64_t* const begin = sink_.BeginIds(slot.id, count);
    uint64_t* out = begin;
    if (slot.drop_zeros) {
      for (uint64_t i = 0; i < count; ++i) {
        at = ReadId(at, out);
        if (at == nullptr) return nullptr;
        out += *out != 0;
      }
      if (out == begin && count > 0) *out++ = 0;
      counters_.zeros_dropped += static_cast<int64_t>(count) - (out - begin);
    } else {
      for (uint64_t i = 0; i < count; ++i) {
        at = ReadId(at, out++);
        if (at == nullptr) return nullptr;
      }
    }
    sink_.EndIds(slot.id, out);
    return at;
  }

  const char* ReadId(const char* at, uint64_t* id) const {
    at = SkipSeparators(at);
    return at == nullptr ? nullptr : ReadUint64(at, id);
  }

  const char* ReadFloats(const SlotPlan& slot, uint64_t count, const char* at) {
    if (slot.id < 0) {
      float ignored = 0;
      for (uint64_t i = 0; i < count; ++i) {
        at = ReadFloat(at, &ignored, false);
        if (at == nullptr) return nullptr;
      }
      return at;
    }
    float* const begin = sink_.BeginFloats(slot.id, count);
    float* out = begin;
    for (uint64_t i = 0; i < count; ++i) {
      at = ReadFloat(at, out, true);
      if (at == nullptr) return nullptr;
      out += !(slot.drop_zeros && std::fabs(static_cast<double>(*out)) < 1e-6);
    }
    if (out == begin && count > 0) *out++ = 0;
    counters_.zeros_dropped += static_cast<int64_t>(count) - (out - begin);
    sink_.EndFloats(slot.id, out);
    return at;
  }

  const char* ReadFloat(const char* at, float* value, bool counted) {
    at = SkipSeparators(at);
    if (at == nullptr) return nullptr;
    const auto ends = [](const char* end) { return EndsToken(*end); };
    const char* const next = ReadPlainFloat(at, value, &digit_guess_, ends);
    return next != nullptr ? next : ReadAnyFloat(at, value, counted);
  }

  const char* ReadAnyFloat(const char* at, float* value, bool counted) {
    const char* token_end = at;
    while (static_cast<unsigned char>(*token_end) > ' ') ++token_end;
    if (!EndsToken(*token_end)) return nullptr;
    const FloatText text = ParseFloat({at, static_cast<size_t>(token_end - at)}, value);
    if (text == FloatText::kNoNumber) return nullptr;
    if (text != FloatText::kFinite && counted) {
      if (text == FloatText::kOverflow) ++counters_.float_overflows;
      if (text == FloatText::kUnderflow) ++counters_.float_underflows;
      if (!std::isfinite(*value)) {
        if (options_.reject_non_finite) return nullptr;
        ++counters_.non_finite;
      }
    }
    return token_end;
  }

  const MultiSlotOptions& options_;
  const char* const end_;
  Sink& sink_;
  ValueCounters counters_;
  DigitGuess digit_guess_;
};

}  // namespace

MultiSlotParser::MultiSlotParser(const SlotSchema& schema, const MultiSlotOptions& options)
    : schema_(&schema), options_(options) {
  for (const SlotSpec& slot : schema.all()) {
    SlotPlan plan;
    plan.id = slot.is_used ? slot.id : -1;
    plan.count = slot.is_used && slot.is_dense ? static_cast<uint32_t>(slot.width) : 0;
    plan.is_float = slot.type == SlotType::kFloat;
    plan.drop_zeros = options.drop_zeros && !slot.is_dense;
    plan.may_be_one_id = slot.is_used && !plan.is_float && plan.count <= 1;
    plan_.push_back(plan);
  }
}

template <class Sink>
LineResult MultiSlotParser::ParseLine(std::string_view line, Sink& sink) {
  if (!line.empty()) [[likely]] {
    FastLine<Sink> fast(options_, line.data() + line.size(), sink);
    sink.BeginRow();
    if (fast.Read(plan_, line.data()) != nullptr) [[likely]] {
      sink.EndRow();
      counters_ += fast.counters();
      return LineResult::kRow;
    }
    sink.Rollback();
  }
  return ParseLineScalar(*schema_, options_, line, sink, counters_, error_);
}

template LineResult MultiSlotParser::ParseLine(std::string_view, ColumnSink&);
template LineResult MultiSlotParser::ParseLine(std::string_view, RowSink&);

}  // namespace millrace
