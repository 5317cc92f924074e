#include "datafeed/parser_comparison.h"

#include <cstring>
#include <vector>

#include "datafeed/column_sink.h"
#include "datafeed/multi_slot_parser.h"
#include "datafeed/multi_slot_scalar.h"
#include "datafeed/row_decoder.h"
#include "datafeed/row_sink.h"

namespace millrace::testing {
namespace {

// What the lines became, apart from the rows: a text per line, and the counters.
struct Outcome {
  std::vector<std::string> lines;
  ValueCounters counters;
  std::vector<uint64_t> row_lines;
};

std::string Describe(LineResult result, const LineError& error) {
  if (result == LineResult::kRow) return "row";
  if (result == LineResult::kBlank) return "blank";
  return "error " + std::to_string(error.column) + " " + std::string(LineErrorKindName(error.kind)) + " " +
         error.ToString();
}

// Lines stand one behind the other, as in a block, with padding behind the last.
template <class Sink, class Parse, class BeforeLine>
void ParseLines(std::string_view padded, size_t size, Sink& sink, Outcome* outcome, Parse parse, BeforeLine before) {
  size_t begin = 0;
  for (uint64_t number = 1; begin < size; ++number) {
    const size_t end = std::min(padded.find('\n', begin), size);
    before(number);
    const std::string text = parse(padded.substr(begin, end - begin), sink);
    if (text == "row") outcome->row_lines.push_back(number);
    outcome->lines.push_back(text);
    begin = end + 1;
  }
}

class Ways {
 public:
  Ways(const SlotSchema& schema, const MultiSlotOptions& options, std::string_view text)
      : schema_(schema), options_(options), size_(text.size()), padded_(text) {
    padded_ += '\n';
    padded_.append(kLinePadding, '7');  // digits, that a parser must not take for its own
  }

  Outcome Scalar(ColumnSink& sink) {
    return RunScalar(sink, [](uint64_t) {});
  }
  Outcome Fast(ColumnSink& sink) {
    return RunFast(sink, [](uint64_t) {});
  }

  // Through packed rows; says when the lines of the rows were lost.
  std::string Rows(bool fast, ColumnSink& columns, Outcome* outcome) {
    const RowLayout layout(schema_, options_);
    PackedRows rows;
    RowSink sink(layout, &rows);
    sink.BeginBlock(3);
    const auto set_line = [&sink](uint64_t line) { sink.set_line(line); };
    *outcome = fast ? RunFast(sink, set_line) : RunScalar(sink, set_line);
    for (size_t i = 0; i < sink.handles().size(); ++i) {
      const RowOrigin origin = rows.Origin(sink.handles()[i]);
      if (origin.file != 3 || origin.line != outcome->row_lines[i]) return "a packed row lost its line";
      DecodeRow(layout, rows.Row(sink.handles()[i]), columns);
    }
    return {};
  }

 private:
  template <class Sink, class BeforeLine>
  Outcome RunScalar(Sink& sink, BeforeLine before) {
    Outcome outcome;
    ParseLines(
        padded_, size_, sink, &outcome,
        [&](std::string_view line, Sink& to) {
          LineError error;
          return Describe(ParseLineScalar(schema_, options_, line, to, outcome.counters, error), error);
        },
        before);
    return outcome;
  }

  template <class Sink, class BeforeLine>
  Outcome RunFast(Sink& sink, BeforeLine before) {
    Outcome outcome;
    MultiSlotParser parser(schema_, options_);
    ParseLines(
        padded_, size_, sink, &outcome,
        [&](std::string_view line, Sink& to) { return Describe(parser.ParseLine(line, to), parser.error()); }, before);
    outcome.counters = parser.counters();
    return outcome;
  }

  const SlotSchema& schema_;
  const MultiSlotOptions& options_;
  size_t size_;
  std::string padded_;
};

template <class T>
bool SameBits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

std::string CompareBatches(const SlotBatch& a, const SlotBatch& b) {
  if (a.rows() != b.rows()) return "rows: " + std::to_string(a.rows()) + " and " + std::to_string(b.rows());
  for (const SlotSpec& slot : a.schema().used()) {
    if (!SameBits(a.ids(slot.id), b.ids(slot.id))) return "ids of " + slot.name;
    if (!SameBits(a.floats(slot.id), b.floats(slot.id))) return "floats of " + slot.name;
    if (!SameBits(a.offsets(slot.id), b.offsets(slot.id))) return "offsets of " + slot.name;
  }
  for (size_t i = 0; i < static_cast<size_t>(a.rows()); ++i) {
    if (!a.ins_ids().empty() && a.ins_ids()[i] != b.ins_ids()[i]) return "ins_id";
    if (!a.contents().empty() && a.contents()[i] != b.contents()[i]) return "content";
  }
  return {};
}

std::string CompareOutcomes(const Outcome& a, const Outcome& b) {
  if (a.lines.size() != b.lines.size()) return "number of lines";
  for (size_t i = 0; i < a.lines.size(); ++i) {
    if (a.lines[i] != b.lines[i]) return "line " + std::to_string(i + 1) + ": " + a.lines[i] + " <> " + b.lines[i];
  }
  return a.counters == b.counters ? "" : "counters";
}

}  // namespace

std::string CompareParsers(const SlotSchema& schema, const MultiSlotOptions& options, std::string_view text) {
  Ways ways(schema, options, text);
  SlotBatch reference(schema);
  SlotBatch other(schema);
  ColumnSink sink(schema);
  sink.Attach(&reference);
  const Outcome scalar = ways.Scalar(sink);
  sink.Detach();
  for (const char* way : {"fast columns", "scalar rows", "fast rows"}) {
    const std::string name = way;
    other.Clear();
    sink.Attach(&other);
    Outcome outcome;
    std::string difference;
    if (name == "fast columns") {
      outcome = ways.Fast(sink);
    } else {
      difference = ways.Rows(name == "fast rows", sink, &outcome);
    }
    sink.Detach();
    if (difference.empty()) difference = CompareOutcomes(scalar, outcome);
    if (difference.empty()) difference = CompareBatches(reference, other);
    if (!difference.empty()) return name + ": " + difference;
  }
  return {};
}

}  // namespace millrace::testing
