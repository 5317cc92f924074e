#include "datafeed/packed_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "core/rng.h"
#include "datafeed/batch_text.h"
#include "datafeed/column_sink.h"
#include "datafeed/multi_slot_parser.h"
#include "datafeed/row_decoder.h"
#include "datafeed/row_sink.h"
#include "datafeed/varint.h"

namespace millrace {
namespace {

LineResult Parse(MultiSlotParser& parser, std::string line, RowSink& sink) {
  const size_t size = line.size();
  line += '\n';
  line.append(kLinePadding, '\0');
  return parser.ParseLine(std::string_view(line).substr(0, size), sink);
}

std::string TextOf(const SlotSchema& schema, const RowLayout& layout, const uint8_t* row) {
  SlotBatch batch(schema);
  ColumnSink sink(schema);
  sink.Attach(&batch);
  DecodeRow(layout, row, sink);
  sink.Detach();
  return testing::RowText(batch, 0);
}

TEST(VarintTest, GivesEveryNumberBack) {
  Rng rng(1);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t value = i < 300 ? static_cast<uint64_t>(i) : rng.Next() >> rng.Below(64);
    uint8_t bytes[kMaxVarintSize] = {};
    const uint8_t* const end = PutVarint(bytes, value);
    uint64_t read = 0;
    ASSERT_EQ(GetVarint(bytes, &read), end);
    ASSERT_EQ(read, value);
  }
  uint8_t bytes[kMaxVarintSize] = {};
  EXPECT_EQ(PutVarint(bytes, ~uint64_t{0}), bytes + kMaxVarintSize);
}

TEST(PackedRowsTest, KeepsRowsAcrossSlabsWhereTheyAreAndWhereTheyCameFrom) {
  const SlotSchema schema = SlotSchema::Create(testing::DescOf("label:uint64[1] d:float[2] a:uint64 f:float")).value();
  const RowLayout layout(schema, {});
  MultiSlotParser parser(schema, {});
  PackedRows rows;
  RowSink sink(layout, &rows);
  Rng rng(7);
  struct Expected {
    std::string text;
    RowHandle handle;
    const uint8_t* address;
    RowOrigin origin;
  };
  std::vector<Expected> expected;
  for (uint32_t file = 0; file < 3; ++file) {
    sink.BeginBlock(file);
    uint64_t line = rng.Below(1000000);
    for (int i = 0; i < 8000; ++i) {
      line += 1 + rng.Below(3) * rng.Below(300);  // lines in between were bad or blank
      sink.set_line(line);
      // Long rows now and then, up to several thousand values, so that rows meet the ends of slabs.
      const uint64_t count = rng.Below(200) == 0 ? rng.Below(5000) : 1 + rng.Below(40);
      std::string text = "1 " + std::to_string(rng.Below(2)) + " 2 0.5 -1.25 " + std::to_string(count + 1);
      std::string ids;
      for (uint64_t k = 0; k <= count; ++k) ids += (k == 0 ? "" : ",") + std::to_string(rng.Next() >> rng.Below(64));
      std::string spaced = ids;
      std::replace(spaced.begin(), spaced.end(), ',', ' ');
      const std::string label = text.substr(2, 1);
      ASSERT_EQ(Parse(parser, text + " " + spaced + " 2 3 0.75", sink), LineResult::kRow);
      expected.push_back({"label=" + label + " d=0.5,-1.25 a=" + ids + " f=3,0.75",
                          sink.handles().back(),
                          rows.Row(sink.handles().back()),
                          {file, line}});
    }
  }
  EXPECT_GT(rows.bytes(), 2 * PackedRows::kSlabSize);
  for (const Expected& row : expected) {
    ASSERT_EQ(rows.Row(row.handle), row.address) << "rows never move";
    ASSERT_EQ(TextOf(schema, layout, rows.Row(row.handle)), row.text);
    ASSERT_EQ(rows.Origin(row.handle).file, row.origin.file);
    ASSERT_EQ(rows.Origin(row.handle).line, row.origin.line);
  }
  rows.Release();
  EXPECT_EQ(rows.bytes(), 0U);
}

TEST(PackedRowsTest, HoldsARowThatIsLargerThanASlab) {
  const SlotSchema schema = SlotSchema::Create(testing::DescOf("a:uint64")).value();
  const RowLayout layout(schema, {});
  MultiSlotParser parser(schema, {});
  PackedRows rows;
  RowSink sink(layout, &rows);
  sink.BeginBlock(0);
  constexpr size_t kCount = PackedRows::kSlabSize / 8 + 1000;
  std::string line = std::to_string(kCount);
  for (size_t i = 0; i < kCount; ++i) line += " 18446744073709551615";
  ASSERT_EQ(Parse(parser, "1 5", sink), LineResult::kRow);
  ASSERT_EQ(Parse(parser, line, sink), LineResult::kRow);
  ASSERT_EQ(Parse(parser, "1 6", sink), LineResult::kRow);
  EXPECT_EQ(TextOf(schema, layout, rows.Row(sink.handles()[0])), "a=5");
  EXPECT_EQ(TextOf(schema, layout, rows.Row(sink.handles()[2])), "a=6");
  const std::string large = TextOf(schema, layout, rows.Row(sink.handles()[1]));
  EXPECT_EQ(large.size(), 2 + kCount * 21 - 1);
}

TEST(PackedRowsTest, ARowThatIsCopiedByItsBytesIsTheSame) {
  DataFeedDesc desc = testing::DescOf("label:uint64[1] d:float[2] a:uint64 f:float w:uint64[3] z:uint64");
  desc.set_parse_ins_id(true);
  desc.set_parse_content(true);
  const SlotSchema schema = SlotSchema::Create(desc).value();
  const MultiSlotOptions options = MultiSlotOptions::FromDesc(desc);
  const RowLayout layout(schema, options);
  MultiSlotParser parser(schema, options);
  PackedRows rows;
  PackedRows copies;
  RowSink sink(layout, &rows);
  PackedRowWriter writer(&copies);
  sink.BeginBlock(0);
  writer.BeginFile(9);
  Rng rng(5);
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t label = rng.Below(300);
    // A long list now and then, whose count has a number of its own.
    const uint64_t count = rng.Below(50) == 0 ? 31 + rng.Below(2000) : 1 + rng.Below(30);
    const uint64_t first = rng.Next() >> rng.Below(64);
    std::string line = "1 name" + std::to_string(i) + " 1 text" + std::string(rng.Below(300), 'x') + " 1 " +
                       std::to_string(label) + " 2 0.5 1e9 " + std::to_string(count) + " " + std::to_string(first);
    for (uint64_t k = 1; k < count; ++k) line += " " + std::to_string(rng.Next() >> rng.Below(64));
    line += " 2 3 0.75 3 70000 1 2 1 " + std::to_string(i);
    sink.set_line(10 * i + 1);
    ASSERT_EQ(Parse(parser, line, sink), LineResult::kRow) << line;
    const uint8_t* const row = rows.Row(sink.handles().back());
    EXPECT_EQ(FirstIdOf(layout, row, schema.Find("label")), label);
    EXPECT_EQ(FirstIdOf(layout, row, schema.Find("a")), first);
    EXPECT_EQ(FirstIdOf(layout, row, schema.Find("w")), 70000U);
    EXPECT_EQ(FirstIdOf(layout, row, schema.Find("z")), i);
    const RowHandle copy = writer.Append(7 * i, EncodedRow(layout, row));
    ASSERT_EQ(TextOf(schema, layout, copies.Row(copy)), TextOf(schema, layout, row));
    ASSERT_EQ(copies.Origin(copy).line, 7 * i);
    ASSERT_EQ(copies.Origin(copy).file, 9U);
  }
}

TEST(PackedRowsTest, AnEmptySlotHasNoFirstId) {
  DataFeedDesc desc = testing::DescOf("a:uint64 b:uint64");
  desc.set_empty_slot(DataFeedDesc::ALLOW);
  const SlotSchema schema = SlotSchema::Create(desc).value();
  const MultiSlotOptions options = MultiSlotOptions::FromDesc(desc);
  const RowLayout layout(schema, options);
  MultiSlotParser parser(schema, options);
  PackedRows rows;
  RowSink sink(layout, &rows);
  sink.BeginBlock(0);
  ASSERT_EQ(Parse(parser, "0 1 7", sink), LineResult::kRow);
  const uint8_t* const row = rows.Row(sink.handles()[0]);
  EXPECT_EQ(FirstIdOf(layout, row, schema.Find("a")), std::nullopt);
  EXPECT_EQ(FirstIdOf(layout, row, schema.Find("b")), 7U);
  EXPECT_EQ(EncodedRow(layout, row).size(), 3U);
}

TEST(PackedRowsTest, AClickLogLineStaysSmall) {
  // 26 slots with 41 ids as large as the benchmark's, 13 floats and a label: the text has more than 300 bytes.
  std::string slots = "label:uint64[1] d:float[13]";
  std::string line = "1 1 13";
  for (int i = 0; i < 13; ++i) line += " 1.234";
  for (int i = 0; i < 26; ++i) {
    slots += " c" + std::to_string(i) + ":uint64";
    line += i < 5 ? " 4 54321 54322 54323 54324" : " 1 54321";
  }
  const SlotSchema schema = SlotSchema::Create(testing::DescOf(slots)).value();
  const RowLayout layout(schema, {});
  MultiSlotParser parser(schema, {});
  PackedRows rows;
  RowSink sink(layout, &rows);
  sink.BeginBlock(0);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(Parse(parser, line, sink), LineResult::kRow);
  const auto bytes = rows.Row(sink.handles()[1]) - rows.Row(sink.handles()[0]);
  EXPECT_EQ(bytes, 1 /* line */ + 27 /* counts and sizes */ + 1 /* label */ + 13 * 4 + 41 * 2);
}

TEST(PackedRowsTest, WritersInThreadsKeepApart) {
  const SlotSchema schema = SlotSchema::Create(testing::DescOf("a:uint64")).value();
  const RowLayout layout(schema, {});
  PackedRows rows;
  std::vector<RowHandle> handles[4];
  {
    std::vector<std::jthread> threads;
    for (uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        MultiSlotParser parser(schema, {});
        RowSink sink(layout, &rows);
        for (uint64_t block = 0; block < 50; ++block) {
          sink.BeginBlock(t);
          for (uint64_t i = 0; i < 100; ++i) {
            sink.set_line(block * 100 + i);
            ASSERT_EQ(Parse(parser, "1 " + std::to_string(t * 10000 + block * 100 + i), sink), LineResult::kRow);
          }
          handles[t].insert(handles[t].end(), sink.handles().begin(), sink.handles().end());
        }
      });
    }
  }
  for (uint32_t t = 0; t < 4; ++t) {
    for (uint64_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(TextOf(schema, layout, rows.Row(handles[t][i])), "a=" + std::to_string(t * 10000 + i));
      ASSERT_EQ(rows.Origin(handles[t][i]).file, t);
      ASSERT_EQ(rows.Origin(handles[t][i]).line, i);
    }
  }
}

}  // namespace
}  // namespace millrace
