#include "dataset/batch_rows.h"

#include <gtest/gtest.h>

#include <string>

#include "datafeed/batch_text.h"
#include "datafeed/drop_zeros.h"

namespace millrace {

bool operator==(const BatchSpan& a, const BatchSpan& b) {
  return a.source == b.source && a.begin == b.begin && a.end == b.end;
}
void PrintTo(const BatchSpan& span, std::ostream* out) { *out << span.source << ":" << span.begin << "-" << span.end; }

namespace {

SlotSchema Schema() {
  DataFeedDesc desc = testing::DescOf("a:uint64 b:float d:uint64[2]");
  desc.set_parse_ins_id(true);
  return SlotSchema::Create(desc).value();
}

/// Rows with a = {n} n times, b = {n / 2}, d = {n, -n}, from lines of file 3 with the given numbers.
void Fill(SlotBatch& batch, std::initializer_list<uint64_t> lines) {
  for (const uint64_t line : lines) {
    const auto n = static_cast<size_t>(line);
    batch.column(0).ids.insert(batch.column(0).ids.end(), n, line);
    batch.column(0).offsets.push_back(static_cast<uint32_t>(batch.column(0).ids.size()));
    batch.column(1).floats.push_back(static_cast<float>(line) / 2);
    batch.column(1).offsets.push_back(static_cast<uint32_t>(batch.column(1).floats.size()));
    batch.column(2).ids.push_back(line);
    batch.column(2).ids.push_back(0 - line);
    batch.mutable_ins_ids().resize(static_cast<size_t>(batch.rows()));
    batch.mutable_ins_ids().push_back("line" + std::to_string(line));
    batch.mutable_origins().push_back({3, line});
    batch.set_rows(batch.rows() + 1);
  }
}

std::vector<BatchSpan> Spans(const SlotBatch& batch) { return {batch.spans().begin(), batch.spans().end()}; }

TEST(BatchRows, RowsArriveWhole) {
  const SlotSchema schema = Schema();
  SlotBatch from(schema);
  Fill(from, {1, 2, 4});
  SlotBatch to(schema);
  Fill(to, {3});
  AppendRows(from, 1, 3, to);
  ASSERT_EQ(to.rows(), 3);
  EXPECT_EQ(testing::RowText(to, 0), "ins_id=line3 a=3,3,3 b=1.5 d=3,18446744073709551613");
  EXPECT_EQ(testing::RowText(to, 1), "ins_id=line2 a=2,2 b=1 d=2,18446744073709551614");
  EXPECT_EQ(testing::RowText(to, 2), "ins_id=line4 a=4,4,4,4 b=2 d=4,18446744073709551612");
  EXPECT_EQ(to.origins()[2].line, 4U);
}

TEST(BatchRows, SpansAreSplitBehindTheRowBefore) {
  const SlotSchema schema = Schema();
  SlotBatch from(schema);
  Fill(from, {2, 5, 9});  // lines 3, 4 are bad; lines 6 to 8 belong to others; 10 is bad
  from.mutable_spans() = {{3, 0, 5}, {3, 8, 10}};
  SlotBatch first(schema);
  AppendRows(from, 0, 1, first);
  EXPECT_EQ(Spans(first), (std::vector<BatchSpan>{{3, 0, 2}}));
  SlotBatch second(schema);
  AppendRows(from, 1, 2, second);
  EXPECT_EQ(Spans(second), (std::vector<BatchSpan>{{3, 2, 5}}));
  SlotBatch third(schema);
  AppendRows(from, 2, 3, third);
  EXPECT_EQ(Spans(third), (std::vector<BatchSpan>{{3, 8, 10}}));
  AppendRows(from, 0, 3, third);
  EXPECT_EQ(Spans(third), (std::vector<BatchSpan>{{3, 8, 10}, {3, 0, 5}, {3, 8, 10}}));
}

TEST(BatchRows, SpansThatMeetBecomeOne) {
  std::vector<BatchSpan> spans;
  ExtendSpans(spans, 1, 7);
  ExtendSpans(spans, 1, 8);
  ExtendSpans(spans, 1, 10);
  ExtendSpans(spans, 2, 11);
  EXPECT_EQ(spans, (std::vector<BatchSpan>{{1, 7, 9}, {1, 10, 11}, {2, 11, 12}}));
}

}  // namespace
}  // namespace millrace
