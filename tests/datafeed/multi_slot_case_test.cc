// Runs tests/cases/multi_slot/*.case: every line through the scalar and the fast parser, into columns and into packed
// rows, with exact batches or the exact error.

#include <gtest/gtest.h>

#include <filesystem>

#include "datafeed/batch_text.h"
#include "datafeed/column_sink.h"
#include "datafeed/line_case.h"
#include "datafeed/multi_slot_feed.h"
#include "datafeed/multi_slot_scalar.h"
#include "datafeed/row_decoder.h"
#include "datafeed/row_sink.h"
#include "paths.h"

namespace millrace {
namespace {

using testing::LineCase;

enum class Way { kScalarColumns, kFastColumns, kScalarRows, kFastRows };

// What the lines of a case became: an entry per step, in the words of the case file, and the counters.
struct Outcome {
  std::vector<std::string> steps;
  std::map<std::string, int64_t> counters;
};

template <class Sink>
void ParseAll(const LineCase& test, const SlotSchema& schema, const MultiSlotOptions& options, bool fast, Sink& sink,
              Outcome* outcome) {
  MultiSlotParser parser(schema, options);
  ValueCounters scalar_counters;
  LineError scalar_error;
  for (const LineCase::Step& step : test.steps) {
    // The bytes behind a line are what the parser must not mistake for its own.
    const std::string padded = step.line + "\n12345678 12345678 12345678 12345678";
    const std::string_view line(padded.data(), step.line.size());
    const LineResult result = fast ? parser.ParseLine(line, sink)
                                   : ParseLineScalar(schema, options, line, sink, scalar_counters, scalar_error);
    const LineError& error = fast ? parser.error() : scalar_error;
    switch (result) {
      case LineResult::kRow: outcome->steps.emplace_back("row"); break;
      case LineResult::kBlank: outcome->steps.emplace_back("blank"); break;
      case LineResult::kBad:
        outcome->steps.push_back("error " + std::to_string(error.column) + " " +
                                 std::string(LineErrorKindName(error.kind)) + " " + error.ToString());
        break;
    }
  }
  (fast ? parser.counters() : scalar_counters).AddTo(outcome->counters);
}

Outcome ParseCase(const LineCase& test, const std::string& feed_class, Way way) {
  const SlotSchema schema = SlotSchema::Create(test.desc).value();
  const MultiSlotOptions options =
      feed_class == "M" ? MultiSlotInMemoryDataFeed::OptionsOf(test.desc) : MultiSlotOptions::FromDesc(test.desc);
  Outcome outcome;
  SlotBatch batch(schema);
  ColumnSink columns(schema);
  columns.Attach(&batch);
  const bool fast = way == Way::kFastColumns || way == Way::kFastRows;
  if (way == Way::kScalarColumns || way == Way::kFastColumns) {
    ParseAll(test, schema, options, fast, columns, &outcome);
  } else {
    const RowLayout layout(schema, options);
    PackedRows rows;
    RowSink sink(layout, &rows);
    sink.BeginBlock(0);
    ParseAll(test, schema, options, fast, sink, &outcome);
    for (const RowHandle& handle : sink.handles()) DecodeRow(layout, rows.Row(handle), columns);
  }
  columns.Detach();
  int row = 0;
  for (std::string& step : outcome.steps) {
    if (step == "row") step += " " + testing::RowText(batch, row++);
  }
  EXPECT_EQ(row, batch.rows());
  return outcome;
}

class MultiSlotCases : public ::testing::TestWithParam<std::string> {};

TEST_P(MultiSlotCases, EveryLineBecomesWhatItShould) {
  const std::vector<LineCase> cases = testing::ReadLineCases(GetParam());
  ASSERT_FALSE(cases.empty());
  for (const LineCase& test : cases) {
    for (const std::string& feed_class : test.classes) {
      for (const Way way : {Way::kScalarColumns, Way::kFastColumns, Way::kScalarRows, Way::kFastRows}) {
        SCOPED_TRACE(test.name + ", class " + feed_class + ", way " + std::to_string(static_cast<int>(way)));
        const Outcome outcome = ParseCase(test, feed_class, way);
        ASSERT_EQ(outcome.steps.size(), test.steps.size());
        for (size_t i = 0; i < test.steps.size(); ++i) {
          EXPECT_EQ(outcome.steps[i], test.steps[i].expected)
              << GetParam() << ":" << test.steps[i].line_number << ": " << test.steps[i].line;
        }
        EXPECT_EQ(outcome.counters, test.counters);
      }
    }
  }
}

std::vector<std::string> CaseFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(SourceDir() + "/tests/cases/multi_slot")) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, MultiSlotCases, ::testing::ValuesIn(CaseFiles()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

}  // namespace
}  // namespace millrace
