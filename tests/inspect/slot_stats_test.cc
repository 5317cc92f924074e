#include "inspect/slot_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "inspect/demo_batch.h"

namespace millrace {
namespace {

using testing::HasSubstr;

TEST(DatasetStats, CountsEverySlot) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  DatasetStats stats(schema, "label", 100);
  stats.Add(batch);
  stats.Add(batch);
  EXPECT_EQ(stats.rows(), 4);
  EXPECT_EQ(stats.label_rate(), 0.5);
  EXPECT_EQ(stats.slot(2).covered_rows, 4);
  EXPECT_EQ(stats.slot(2).values, 6);
  EXPECT_EQ(stats.slot(2).lengths, (std::map<uint64_t, int64_t>{{1, 2}, {2, 2}}));
  EXPECT_EQ(stats.slot(2).ids.cardinality(), 3);
  EXPECT_EQ(stats.slot(3).covered_rows, 2);
  EXPECT_EQ(stats.slot(0).zeros, 2);
  EXPECT_EQ(stats.slot(1).minimum, -1);
  EXPECT_FLOAT_EQ(static_cast<float>(stats.slot(1).maximum), 1e20F);
}

TEST(DatasetStats, ALabelOfZeroIsThereAndItsCoverageIsNoRate) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  DatasetStats stats(schema, "label", 100);
  stats.Add(batch);
  EXPECT_EQ(stats.label_rate(), 0.5);
  EXPECT_EQ(stats.slot(0).covered_rows, 2);
  EXPECT_THAT(stats.AsTable(0), HasSubstr("100.00 %"));
}

TEST(DatasetStats, LabelRateOfAnId) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  DatasetStats stats(schema, "label", 100);
  stats.Add(batch);
  for (const IdCounts::Entry& entry : stats.slot(2).ids.Top(3)) EXPECT_EQ(entry.clicks, entry.id == 7 ? 0 : 1);
  EXPECT_THAT(stats.AsJson(3),
              HasSubstr(R"("top":[{"id":5,"count":1,"label_rate":1},{"id":7,"count":1,"label_rate":0})"));
  EXPECT_THAT(stats.AsTable(3), HasSubstr("top: 5: 1 (1.000) 7: 1 (0.000) 18446744073709551615: 1 (1.000)"));
}

TEST(DatasetStats, LabelsThatAreNeitherZeroNorOneAreCounted) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  DatasetStats stats(schema, "label", 100);
  stats.Add(batch);
  EXPECT_THAT(stats.AsTable(0), testing::Not(HasSubstr("neither")));
  batch.column(0).ids = {2, 1};
  stats.Add(batch);
  EXPECT_THAT(stats.AsTable(0), HasSubstr("labels neither 0 nor 1: 1\n"));
  EXPECT_THAT(stats.AsJson(0), HasSubstr(R"("odd_labels":1,)"));
}

TEST(DatasetStats, NonFiniteValuesAreCountedApart) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  batch.column(1).floats = {std::numeric_limits<float>::quiet_NaN(), 2, std::numeric_limits<float>::infinity(), 4};
  DatasetStats stats(schema, "", 100);
  stats.Add(batch);
  EXPECT_EQ(stats.slot(1).non_finite, 2);
  EXPECT_EQ(stats.slot(1).minimum, 2);
  EXPECT_EQ(stats.slot(1).maximum, 4);
  EXPECT_THAT(stats.AsJson(3), HasSubstr(R"("min":2,"max":4,"mean":3,"deviation":1,"non_finite":2)"));
  EXPECT_FALSE(stats.label_rate().has_value());
}

// The mean's square was subtracted from the mean of squares, both rounded.
TEST(DatasetStats, NumbersThatLieCloseTogetherHaveTheirDeviation) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  batch.column(1).floats = {1e9F, 1e9F + 64, 1e9F, 1e9F + 64};
  DatasetStats stats(schema, "", 100);
  for (int i = 0; i < 1000; ++i) stats.Add(batch);
  EXPECT_THAT(stats.AsJson(3), HasSubstr(R"("mean":1000000032,"deviation":32,)"));
}

TEST(DatasetStats, LongListsShareABucket) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  batch.column(2).ids.assign(40, 1);
  batch.column(2).offsets = {0, 20, 40};
  DatasetStats stats(schema, "label", 100);
  stats.Add(batch);
  EXPECT_THAT(stats.AsJson(1), HasSubstr(R"("lengths":{"17-32":2})"));
}

TEST(DatasetStats, NoRowsAreNoError) {
  const SlotSchema schema = DemoSchema();
  const DatasetStats stats(schema, "label", 100);
  EXPECT_THAT(stats.AsJson(3), HasSubstr(R"({"rows":0,"slots":{"label":{"type":"uint64","coverage":0)"));
}

}  // namespace
}  // namespace millrace
