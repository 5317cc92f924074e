#include "report/rank_progress.h"

#include <gtest/gtest.h>

#include "e2e/small_job.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

std::string BytesOf(const MetricTotals& totals) {
  std::string bytes;
  WireWriter out(&bytes);
  PutTotals(totals, &out);
  return bytes;
}

class PutTotalsTest : public testing::Test {
 protected:
  const SmallJob small_{32, 1};
  const std::unique_ptr<JobSession> session_ = MakeJob(small_.DeepJob(""), "");
  const MetricSet& metrics_ = session_->job().metrics();
};

TEST_F(PutTotalsTest, ZerosTakeNoBytesAndAllComesBack) {
  const size_t size = metrics_.NewTotals().sums.size();
  ASSERT_GT(size, 100000U);
  for (const std::vector<size_t>& filled :
       std::vector<std::vector<size_t>>{{}, {0}, {size - 1}, {0, 1, 2, 7, 9, size - 2, size - 1}}) {
    MetricTotals totals = metrics_.NewTotals();
    for (const size_t at : filled) totals.sums[at] = 0.1 + static_cast<double>(at);
    ASSERT_FALSE(totals.samples.empty());
    totals.samples[0].Add({.group = 7, .prediction = 0.25F, .weight = 1.0F});
    const std::string bytes = BytesOf(totals);
    EXPECT_LT(bytes.size(), 500U);
    WireReader in(bytes);
    const std::optional<MetricTotals> back = GetTotals(&in, metrics_);
    ASSERT_TRUE(back.has_value());
    EXPECT_TRUE(in.rest().empty());
    EXPECT_EQ(back->sums, totals.sums);
    EXPECT_EQ(back->samples[0].rows().size(), 1U);
    for (size_t cut = 0; cut < bytes.size(); cut += 13) {
      WireReader part(std::string_view(bytes).substr(0, cut));
      EXPECT_FALSE(GetTotals(&part, metrics_).has_value()) << cut << " of " << bytes.size();
    }
  }
}

TEST_F(PutTotalsTest, ExamplesOfExactMetricsComeBackAndThatThereAreTooMany) {
  ASSERT_GT(metrics_.exact_metrics(), 0U);
  MetricTotals totals = metrics_.NewTotals();
  totals.examples.resize(metrics_.exact_metrics(), ExampleRows(1));
  const std::vector<float> values = {0.25F, 0.5F};
  for (const bool is_whole : {true, false}) {
    totals.examples[0].Add({std::span(values).first(1), std::span(values).last(1)});
    const std::string bytes = BytesOf(totals);
    WireReader in(bytes);
    std::optional<MetricTotals> back = GetTotals(&in, metrics_);
    ASSERT_TRUE(back.has_value() && back->examples.size() == totals.examples.size());
    ASSERT_EQ(back->examples[0].is_whole(), is_whole);
    if (is_whole) {
      EXPECT_EQ(back->examples[0].Sorted()[0].prediction, 0.25F);
    }
    MetricTotals sum = metrics_.NewTotals();
    MetricSet::Add(*back, &sum);
    EXPECT_EQ(sum.examples[0].is_whole(), is_whole);
  }
}

TEST_F(PutTotalsTest, MoreThanThereIsToCountIsRefused) {
  const auto size = static_cast<uint64_t>(metrics_.NewTotals().sums.size());
  const std::vector<double> values(3, 1.0);
  for (const uint64_t zeros : {size - 2, size + 1, uint64_t{0} - 1}) {
    std::string bytes;
    WireWriter out(&bytes);
    out.Put(size);
    out.Put(zeros);
    out.PutAll(std::span<const double>(values));
    WireReader in(bytes);
    EXPECT_FALSE(GetTotals(&in, metrics_).has_value()) << zeros;
  }
}

// Ranks told nothing of zones, of times of 1970, of words and of one-hot data.
TEST(PutPassStatsTest, WhatARankReadGivesTheWarningsOfOneProcess) {
  PassStats read;
  read.files = 2;
  read.first_bad_lines = {"part-0:3: bad"};
  read.counters = {{"overflow", 2}};
  ValueNames& names = read.names;
  names.lines = 4;
  names.some = {"time"};
  names.absent = {"tmie"};
  names.words["city"].other = "WIEN";
  names.all_ones["item"] = true;
  names.truths["flag"] = {.text = "True", .place = "part-0:1:5"};
  names.trained["flag"] = {.text = "1", .place = "old:1:1"};
  names.not_utf8["name"] = {.text = "\xfc", .place = "part-0:2:1"};
  names.not_utf8_values["name"] = 3;
  names.zones["day"]["+09:00"] = {.text = "2026-01-01T00:00+09:00", .place = "part-0:4:1"};
  names.trained_zones["day"]["UTC"] = {.text = "UTC", .place = "old:1:1"};
  names.clocks = {"day"};
  names.of_1970["ms"] = {.text = "1700000000", .place = "part-0:1:9"};
  names.shares["city"] = {.rows = 1000, .empty = 900, .ids = 1000, .unknown = 1000, .has_vocabulary = true};
  names.trained_shares["city"] = {.rows = 1000, .empty = 0, .ids = 1000, .unknown = 0};
  std::string bytes;
  WireWriter out(&bytes);
  PutPassStats(read, &out);
  WireReader in(bytes);
  PassStats back;
  GetPassStats(&in, &back);
  EXPECT_TRUE(in.ok() && in.rest().empty());
  for (const Reads reads : {Reads::kTraining, Reads::kModel}) {
    EXPECT_EQ(ValueWarnings(back, reads), ValueWarnings(read, reads));
    EXPECT_GE(ValueWarnings(back, reads).size(), 6U);
  }
  std::string again;
  WireWriter twice(&again);
  PutPassStats(back, &twice);
  EXPECT_EQ(again, bytes);
}

}  // namespace
}  // namespace millrace
