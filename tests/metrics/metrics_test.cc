#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "metrics/group_sample.h"
#include "metrics/metric_list.h"
#include "metrics/metric_set.h"
#include "model.pb.h"

namespace millrace {
namespace {

struct Rows {
  std::vector<float> predictions;
  std::vector<float> labels;
  std::vector<uint64_t> groups;

  MetricRows view(size_t begin, size_t end) const {
    return {{predictions.data() + begin, end - begin}, {labels.data() + begin, end - begin}};
  }
};

// Clicks that follow a logistic law around a rate: predictions are the true logit with some noise.
Rows MakeRows(size_t count, uint64_t seed, double base_logit, int groups) {
  Rng rng(seed);
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    const double logit = base_logit + 3 * (rng.Uniform() + rng.Uniform() - 1);
    const double noise = rng.Uniform() - 0.5;
    rows.predictions.push_back(static_cast<float>(1 / (1 + std::exp(-logit - noise))));
    rows.labels.push_back(rng.Uniform() < 1 / (1 + std::exp(-logit)) ? 1.0F : 0.0F);
    rows.groups.push_back(rng.Below(static_cast<uint64_t>(groups)));
  }
  return rows;
}

// Mann-Whitney over all pairs, by ranks; ties count half.
double ExactAuc(const std::vector<float>& predictions, const std::vector<float>& labels) {
  std::vector<size_t> order(predictions.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return predictions[a] < predictions[b]; });
  double pairs = 0;
  double negatives = 0;
  double positives = 0;
  for (size_t i = 0; i < order.size();) {
    double tied_negatives = 0;
    double tied_positives = 0;
    const float value = predictions[order[i]];
    for (; i < order.size() && predictions[order[i]] == value; ++i) {
      (labels[order[i]] > 0.5F ? tied_positives : tied_negatives) += 1;
    }
    pairs += tied_positives * (negatives + tied_negatives / 2);
    negatives += tied_negatives;
    positives += tied_positives;
  }
  return pairs / (negatives * positives);
}

double ExactGroupedAuc(const Rows& rows) {
  std::map<uint64_t, std::pair<std::vector<float>, std::vector<float>>> groups;
  for (size_t i = 0; i < rows.labels.size(); ++i) {
    groups[rows.groups[i]].first.push_back(rows.predictions[i]);
    groups[rows.groups[i]].second.push_back(rows.labels[i]);
  }
  double weighted = 0;
  double weight = 0;
  for (const auto& [group, columns] : groups) {
    const double auc = ExactAuc(columns.first, columns.second);
    if (std::isnan(auc)) continue;
    weighted += auc * static_cast<double>(columns.first.size());
    weight += static_cast<double>(columns.first.size());
  }
  return weighted / weight;
}

std::vector<double> SumsOf(const Metric& metric, const MetricRows& rows) {
  MetricSums sums(metric.size());
  metric.Add(rows, sums);
  std::vector<double> totals;
  for (size_t i = 0; i < sums.size(); ++i) totals.push_back(sums.Get(i));
  return totals;
}

GroupSample SampleOf(const Rows& rows, size_t begin, size_t end, size_t most_rows) {
  GroupSample sample(most_rows);
  for (size_t i = begin; i < end; ++i) sample.Add({rows.groups[i], rows.predictions[i], rows.labels[i]});
  return sample;
}

GroupSample SampleOf(const Rows& rows) { return SampleOf(rows, 0, rows.labels.size(), rows.labels.size() + 1); }

std::string BytesOf(const GroupSample& sample) {
  std::ostringstream bytes;
  sample.Write(bytes);
  return std::move(bytes).str();
}

double Gauc(GroupSample sample) { return GroupedAuc(sample); }

const MetricRegistry& Builtin() {
  static const MetricRegistry registry = [] {
    MetricRegistry made;
    EXPECT_TRUE(RegisterBuiltinMetrics(made).ok());
    return made;
  }();
  return registry;
}

std::vector<MetricDesc::Kind> KindsOfSums() {
  std::vector<MetricDesc::Kind> kinds;
  for (int k = MetricDesc::Kind_MIN; k <= MetricDesc::Kind_MAX; ++k) {
    const auto kind = static_cast<MetricDesc::Kind>(k);
    if (kind != MetricDesc::GAUC) kinds.push_back(kind);
  }
  return kinds;
}

std::unique_ptr<Metric> MakeMetric(MetricDesc::Kind kind) {
  return Builtin().Find(MetricDesc::Kind_Name(kind))->make();
}

double ValueOf(MetricDesc::Kind kind, const Rows& rows) {
  const std::unique_ptr<Metric> metric = MakeMetric(kind);
  return metric->Compute(SumsOf(*metric, rows.view(0, rows.labels.size())));
}

// A plugin's metric with another clip was told of 1e-7.
TEST(MetricsTest, ClippedTextShowsTheClipOfTheMetric) {
  MetricInfo info;
  info.clipped_at = 1e-3;
  EXPECT_EQ(ClippedText("mine", info, 2),
            "mine: 2 predictions are nearer than 0.001 to 0 or 1 and count as 0.001 from it");
  EXPECT_EQ(ClippedText("mine", info, 1),
            "mine: 1 prediction is nearer than 0.001 to 0 or 1 and counts as 0.001 from it");
}

TEST(MetricsTest, EveryKindThatAJobMayNameIsRegisteredUnderItsNameOnce) {
  std::vector<std::string> kinds;
  for (int k = MetricDesc::Kind_MIN; k <= MetricDesc::Kind_MAX; ++k) {
    kinds.push_back(MetricDesc::Kind_Name(static_cast<MetricDesc::Kind>(k)));
  }
  EXPECT_EQ(Builtin().names(), kinds);
  MetricRegistry twice = Builtin();
  EXPECT_EQ(RegisterBuiltinMetrics(twice).message(), "a metric of the kind \"AUC\" is registered already");
}

// A row that counts n times is n rows.
TEST(MetricsTest, AWeightIsThatManyRows) {
  const Rows rows = MakeRows(3000, 33, -1, 40);
  Rows repeated;
  std::vector<float> weights;
  GroupSample weighed(100000);
  for (size_t i = 0; i < rows.labels.size(); ++i) {
    const size_t times = 1 + i % 4;
    weights.push_back(static_cast<float>(times));
    weighed.Add({rows.groups[i], rows.predictions[i], rows.labels[i] > 0.5F ? weights[i] : -weights[i]});
    for (size_t n = 0; n < times; ++n) {
      repeated.predictions.push_back(rows.predictions[i]);
      repeated.labels.push_back(rows.labels[i]);
      repeated.groups.push_back(rows.groups[i]);
    }
  }
  for (const MetricDesc::Kind kind : KindsOfSums()) {
    const std::unique_ptr<Metric> metric = MakeMetric(kind);
    const double value = metric->Compute(SumsOf(*metric, {rows.predictions, rows.labels, weights}));
    EXPECT_NEAR(value, ValueOf(kind, repeated), 1e-9) << MetricDesc::Kind_Name(kind);
    EXPECT_GT(std::abs(value - ValueOf(kind, rows)), 1e-6) << "weights that change nothing prove nothing";
    EXPECT_TRUE(Builtin().Find(MetricDesc::Kind_Name(kind))->is_weighted);
  }
  EXPECT_NEAR(Gauc(weighed), ExactGroupedAuc(repeated), 1e-9);
}

TEST(MetricsTest, AScoreIsLargerForTheBetterValue) {
  const auto score = [](const char* kind, double value) { return ScoreOf(Builtin().Find(kind)->better, value); };
  for (const char* rises : {"AUC", "GAUC", "ACCURACY"}) EXPECT_GT(score(rises, 0.9), score(rises, 0.8)) << rises;
  for (const char* falls : {"LOGLOSS", "NORMALIZED_ENTROPY", "MAE", "RMSE"}) {
    EXPECT_LT(score(falls, 0.9), score(falls, 0.8)) << falls;
  }
  EXPECT_GT(score("CALIBRATION", 0.9), score("CALIBRATION", 1.2));
  EXPECT_LT(score("AUC", std::nan("")), score("AUC", 0));
}

TEST(MetricsTest, AucIsWithinOneInTenThousandOfTheExactOneAtAnyClickRate) {
  for (const double base_logit : {0.0, -3.0, -6.0, 4.0}) {
    const Rows rows = MakeRows(20000, 11, base_logit, 10);
    EXPECT_NEAR(ValueOf(MetricDesc::AUC, rows), ExactAuc(rows.predictions, rows.labels), 1e-4) << base_logit;
  }
}

std::vector<ExampleRow> ExamplesOf(const Rows& rows) {
  ExampleRows examples;
  examples.Add(rows.view(0, rows.labels.size()));
  const std::span<const ExampleRow> sorted = examples.Sorted();
  return {sorted.begin(), sorted.end()};
}

// Predictions that steps of the logit do not tell apart, and scores that are no probabilities.
std::vector<Rows> HardRows() {
  std::vector<Rows> all(4, MakeRows(5000, 23, -1, 10));
  for (size_t i = 0; i < all[0].labels.size(); ++i) {
    const double logit = std::log(all[0].predictions[i] / (1 - all[0].predictions[i]));
    const auto p = [](double of) { return static_cast<float>(1 / (1 + std::exp(-of))); };
    all[0].predictions[i] = p(-4 + 1e-5 * logit);
    all[1].predictions[i] = p(-18 + 0.1 * logit);
    all[2].predictions[i] = p(20 * logit);
    all[3].predictions[i] = static_cast<float>(100 * logit);
  }
  return all;
}

TEST(MetricsTest, AucOfTheExamplesIsExactAndThatOfStepsIsNoFartherFromItThanItsBound) {
  double largest = 0;
  for (Rows rows : HardRows()) {
    const double exact = ExactAuc(rows.predictions, rows.labels);
    EXPECT_NEAR(ExactAuc(ExamplesOf(rows)), exact, 1e-12);
    const std::vector<double> sums = SumsOf(*MakeAuc(), rows.view(0, rows.labels.size()));
    const double error = std::abs(MakeAuc()->Compute(sums) - exact);
    EXPECT_LE(error, AucBound(sums));
    largest = std::max(largest, error);
  }
  EXPECT_GT(largest, 0.1) << "steps that tell these apart prove nothing";
}

TEST(MetricsTest, StepsOfAnAucRiseWithTheScoreBelow0AndAbove1Too) {
  const std::vector<float> scores = {-INFINITY, -1e30F, -17, -1, -1e-3F, 0, 1e-6F, 0.5F, 1, 1.1F, 40, 1e30F, INFINITY};
  for (size_t i = 1; i < scores.size(); ++i) {
    EXPECT_EQ(ValueOf(MetricDesc::AUC, {{scores[i - 1], scores[i]}, {0, 1}, {}}), 1) << scores[i];
  }
}

TEST(MetricsTest, StepsOfAnAucOfLogitsAreThoseOfItsProbabilities) {
  Rows rows = MakeRows(20000, 26, -2, 10);
  const double of_probabilities = ValueOf(MetricDesc::AUC, rows);
  for (float& prediction : rows.predictions) prediction = std::log(prediction / (1 - prediction));
  const std::vector<double> sums = SumsOf(*MakeAucOfLogits(), rows.view(0, 20000));
  EXPECT_NEAR(MakeAucOfLogits()->Compute(sums), of_probabilities, 1e-6);
  EXPECT_LT(AucBound(sums), 1e-4);
  for (const float logit : {-1e30F, -40.0F, -16.1F, -15.0F, 16.1F, 40.0F}) {
    const Rows pair{{logit, logit + std::abs(logit) / 8}, {0, 1}, {}};
    EXPECT_EQ(MakeAucOfLogits()->Compute(SumsOf(*MakeAucOfLogits(), pair.view(0, 2))), 1) << logit;
  }
}

TEST(ExampleRowsTest, MoreThanTheMostAreNoneHoweverTheyCome) {
  const Rows rows = MakeRows(100, 24, -1, 10);
  ExampleRows some(150);
  some.Add(rows.view(0, 100));
  ExampleRows more(150);
  more.Add(rows.view(40, 100));
  EXPECT_TRUE(some.is_whole() && more.is_whole());
  some.Merge(more);
  EXPECT_FALSE(some.is_whole());
  EXPECT_TRUE(some.Sorted().empty());
  more.Merge(some);
  EXPECT_FALSE(more.is_whole());
  more.Add(rows.view(0, 1));
  EXPECT_FALSE(more.is_whole());
}

TEST(ExampleRowsTest, PartsMergeToTheWholeAndComeBackFromTheirBytes) {
  const Rows rows = MakeRows(300, 25, -1, 10);
  ExampleRows merged;
  for (const size_t part : {size_t{2}, size_t{0}, size_t{1}}) {
    ExampleRows one;
    one.Add(rows.view(100 * part, 100 * part + 100));
    std::ostringstream bytes;
    one.Write(bytes);
    const std::string text = std::move(bytes).str();
    std::string_view rest = text;
    ExampleRows back;
    ASSERT_TRUE(back.TakeBytes(&rest));
    EXPECT_TRUE(rest.empty());
    merged.Merge(back);
    std::string_view cut = std::string_view(text).substr(0, text.size() - 1);
    EXPECT_FALSE(ExampleRows().TakeBytes(&cut));
  }
  EXPECT_EQ(ExactAuc(merged.Sorted()), ExactAuc(ExamplesOf(rows)));
}

TEST(GroupedAucTest, IsThatOfEveryPairWithinEachGroupHoweverManyGroupsThereAre) {
  for (const int groups : {1, 20, 400, 17000, 1000000}) {
    Rows rows = MakeRows(50000, 12, -1, groups);
    EXPECT_NEAR(Gauc(SampleOf(rows)), ExactGroupedAuc(rows), 1e-9) << groups;
    // Many ties.
    for (float& prediction : rows.predictions) prediction = std::round(prediction * 20) / 20;
    EXPECT_NEAR(Gauc(SampleOf(rows)), ExactGroupedAuc(rows), 1e-9) << groups << " groups, ties";
  }
}

TEST(GroupedAucTest, ByHand) {
  // Group 7: one pair of two in order, three rows. Group 8: a tie, two rows. Group 9: one class.
  GroupSample sample(100);
  for (const GroupedRow& row : {GroupedRow{7, 0.5F, 1}, GroupedRow{8, 0.3F, 0}, GroupedRow{7, 0.9F, 0},
                                GroupedRow{9, 0.1F, 1}, GroupedRow{7, 0.2F, 0}, GroupedRow{8, 0.3F, 1}}) {
    sample.Add(row);
  }
  EXPECT_DOUBLE_EQ(Gauc(sample), (0.5 * 3 + 0.5 * 2) / 5);
  EXPECT_TRUE(std::isnan(Gauc(GroupSample(1))));
}

TEST(GroupedAucTest, PartsOfThreadsAndWindowsMergeExactly) {
  const Rows rows = MakeRows(9000, 15, -1, 700);
  const double whole = Gauc(SampleOf(rows));
  for (const auto& order : {std::vector<size_t>{0, 1, 2}, {2, 0, 1}}) {
    GroupSample merged(10000);
    for (const size_t part : order) merged.Merge(SampleOf(rows, part * 3000, part * 3000 + 3000, 10000));
    EXPECT_EQ(Gauc(merged), whole);
  }
  GroupSample thread = SampleOf(rows, 0, 4000, 10000);
  thread.StartWindow();
  for (size_t i = 4000; i < 9000; ++i) thread.Add({rows.groups[i], rows.predictions[i], rows.labels[i]});
  GroupSample window(10000);
  window.MergeWindow(thread);
  EXPECT_EQ(Gauc(window), Gauc(SampleOf(rows, 4000, 9000, 10000)));
}

TEST(GroupedAucTest, SortedPartByPartItIsThatOfAllRowsAtOnce) {
  for (const bool ties : {false, true}) {
    Rows rows = MakeRows(9000, 19, -1, 300);
    for (float& prediction : rows.predictions) prediction = ties ? std::round(8 * prediction) / 8 : prediction;
    GroupSample total(10000);
    GroupSample worker(10000);
    for (size_t end = 0; end < 9000;) {
      for (const size_t begin = end; end < std::min<size_t>(begin + 700, 9000); ++end) {
        worker.Add({rows.groups[end], rows.predictions[end], rows.labels[end]});
      }
      worker.StartWindow();
      // This row is of the next window, so it stays.
      const GroupedRow next{1, 0.5F, 1};
      worker.Add(next);
      total.Merge(worker.TakeEarlierRows());
      ASSERT_EQ(worker.rows().size(), 1U);
      worker.Clear();
      EXPECT_EQ(GroupedAuc(total), Gauc(SampleOf(rows, 0, end, 10000))) << end;
      // A copy is in order already; nothing is lost in it.
      GroupSample copy(10000);
      copy.Merge(total);
      EXPECT_EQ(Gauc(copy), GroupedAuc(total));
      EXPECT_EQ(copy.rows().size(), end);
    }
  }
}

TEST(GroupedAucTest, HalvingASortedSampleLeavesItSorted) {
  const Rows rows = MakeRows(40000, 20, -1, 800);
  GroupSample total(6000);
  for (size_t begin = 0; begin < 40000; begin += 500) {
    total.Merge(SampleOf(rows, begin, begin + 500, 6000));
    EXPECT_EQ(GroupedAuc(total), Gauc(SampleOf(rows, 0, begin + 500, 6000))) << begin;
  }
  EXPECT_GE(total.halvings(), 2);
}

TEST(GroupedAucTest, TheOrderOfSortedRowsIsTheSameWhateverPartsTheyCameIn) {
  Rows rows = MakeRows(3000, 21, -1, 50);
  for (float& prediction : rows.predictions) prediction = std::round(8 * prediction) / 8;
  std::string bytes[2];
  for (const size_t parts : {size_t{1}, size_t{3}}) {
    GroupSample total(10000);
    for (size_t part = 0; part < parts; ++part) {
      total.Merge(SampleOf(rows, part * 3000 / parts, (part + 1) * 3000 / parts, 10000));
      total.Sort();
    }
    bytes[parts / 2] = BytesOf(total);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

std::map<uint64_t, int> RowsByGroup(const GroupSample& sample) {
  std::map<uint64_t, int> counts;
  for (const GroupedRow& row : sample.rows()) ++counts[row.group];
  return counts;
}

TEST(GroupedAucTest, WithBoundedMemoryItKeepsWholeGroups) {
  const Rows rows = MakeRows(40000, 16, -1, 800);
  const GroupSample sample = SampleOf(rows, 0, 40000, 6000);
  EXPECT_LE(sample.rows().size(), 6000U);
  EXPECT_GT(sample.rows().size(), 1000U);
  EXPECT_GE(sample.halvings(), 2);
  const std::map<uint64_t, int> all = RowsByGroup(SampleOf(rows));
  for (const auto& [group, count] : RowsByGroup(sample)) EXPECT_EQ(count, all.at(group)) << group;
  EXPECT_NEAR(Gauc(sample), ExactGroupedAuc(rows), 0.03);
}

TEST(GroupedAucTest, BoundedPartsMergeToWhatOneWouldHaveKept) {
  const Rows rows = MakeRows(40000, 17, -1, 800);
  GroupSample merged = SampleOf(rows, 0, 5000, 6000);  // all groups so far
  merged.StartWindow();
  merged.Merge(SampleOf(rows, 5000, 40000, 6000));
  EXPECT_EQ(RowsByGroup(merged), RowsByGroup(SampleOf(rows, 0, 40000, 6000)));
  GroupSample window(6000);
  window.MergeWindow(merged);
  std::map<uint64_t, int> expected = RowsByGroup(SampleOf(rows, 5000, 40000, 40000));
  for (const auto& [group, count] : RowsByGroup(window)) EXPECT_EQ(count, expected.at(group)) << group;
}

TEST(GroupedAucTest, TakingMergesAndLeavesNothingBehind) {
  const Rows rows = MakeRows(9000, 20, -1, 300);
  for (const size_t most_rows : {10000, 6000, 2000}) {
    GroupSample merged(most_rows);
    GroupSample taken(most_rows);
    for (size_t begin = 0; begin < 9000; begin += 3000) {
      GroupSample part = SampleOf(rows, begin, begin + 3000, most_rows);
      if (begin > 0) part.Sort();
      merged.Merge(part);
      taken.Take(part);
      EXPECT_TRUE(part.rows().empty());
      EXPECT_EQ(part.halvings(), 0);
    }
    EXPECT_EQ(BytesOf(taken), BytesOf(merged));
    EXPECT_EQ(Gauc(taken), Gauc(merged));
  }
}

TEST(GroupedAucTest, BytesComeBackAndDamagedOnesAreRefused) {
  const Rows rows = MakeRows(3000, 18, -1, 100);
  const GroupSample sample = SampleOf(rows, 0, 3000, 1000);
  const std::string bytes = BytesOf(sample);
  std::string_view rest = bytes;
  GroupSample back(1000);
  ASSERT_TRUE(back.TakeBytes(&rest));
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(back.halvings(), sample.halvings());
  EXPECT_EQ(Gauc(back), Gauc(sample));
  for (const size_t length : {size_t{0}, size_t{15}, bytes.size() - 1}) {
    std::string_view cut = std::string_view(bytes).substr(0, length);
    EXPECT_FALSE(GroupSample(1000).TakeBytes(&cut)) << length;
  }
}

TEST(MetricsTest, AddingPartsInAnyOrderGivesTheWhole) {
  const Rows rows = MakeRows(3000, 13, -1, 50);
  Rng rng(14);
  for (const MetricDesc::Kind kind : KindsOfSums()) {
    const auto metric = MakeMetric(kind);
    const double whole = metric->Compute(SumsOf(*metric, rows.view(0, 3000)));
    std::vector<size_t> cuts = {0, rng.Below(3000), rng.Below(3000), rng.Below(3000), 3000};
    std::sort(cuts.begin(), cuts.end());
    std::vector<double> forward(static_cast<size_t>(metric->size()));
    std::vector<double> backward(forward);
    for (size_t part = 0; part + 1 < cuts.size(); ++part) {
      const auto a = SumsOf(*metric, rows.view(cuts[part], cuts[part + 1]));
      const size_t other = cuts.size() - 2 - part;
      const auto b = SumsOf(*metric, rows.view(cuts[other], cuts[other + 1]));
      for (size_t i = 0; i < forward.size(); ++i) {
        forward[i] += a[i];
        backward[i] += b[i];
      }
    }
    EXPECT_NEAR(metric->Compute(forward), whole, 1e-9) << MetricDesc::Kind_Name(kind);
    EXPECT_NEAR(metric->Compute(backward), whole, 1e-9) << MetricDesc::Kind_Name(kind);
  }
}

TEST(MetricsTest, MeansAreThoseOfTheirDefinitions) {
  const Rows rows{{0.9F, 0.2F, 0.6F, 0.4F}, {1, 0, 0, 1}, {0, 0, 0, 0}};
  const double log_loss = -(std::log(0.9) + std::log(0.8) + std::log(0.4) + std::log(0.4)) / 4;
  EXPECT_NEAR(ValueOf(MetricDesc::LOGLOSS, rows), log_loss, 1e-7);
  EXPECT_NEAR(ValueOf(MetricDesc::NORMALIZED_ENTROPY, rows), log_loss / std::log(2.0), 1e-7);
  EXPECT_NEAR(ValueOf(MetricDesc::CALIBRATION, rows), 2.1 / 2, 1e-7);
  EXPECT_NEAR(ValueOf(MetricDesc::ACCURACY, rows), 0.5, 1e-12);
  EXPECT_NEAR(ValueOf(MetricDesc::MAE, rows), (0.1 + 0.2 + 0.6 + 0.6) / 4, 1e-7);
  EXPECT_NEAR(ValueOf(MetricDesc::RMSE, rows), std::sqrt((0.01 + 0.04 + 0.36 + 0.36) / 4), 1e-7);
  EXPECT_NEAR(ValueOf(MetricDesc::AUC, rows), 0.75, 1e-12);
}

TEST(MetricsTest, TheLogLossOfASharedLabelIsTheExpectedOne) {
  const Rows rows{{0.9F, 0.2F}, {0.25F, 0.5F}, {0, 0}};
  const double log_loss =
      -(0.25 * std::log(0.9) + 0.75 * std::log(0.1) + 0.5 * std::log(0.2) + 0.5 * std::log(0.8)) / 2;
  EXPECT_NEAR(ValueOf(MetricDesc::LOGLOSS, rows), log_loss, 1e-6);
  // Beyond 0 and 1 as at them.
  EXPECT_EQ(ValueOf(MetricDesc::LOGLOSS, {{0.9F, 0.2F}, {3, -2}, {0, 0}}),
            ValueOf(MetricDesc::LOGLOSS, {{0.9F, 0.2F}, {1, 0}, {0, 0}}));
}

TEST(MetricsTest, OfClassesThatOfTheLabelIsReadOrWhetherItIsTheLikeliest) {
  const std::vector<float> row = {0.2F, 0.5F, 0.3F};
  EXPECT_EQ(ValueOfRow(OfClasses::kLabels, row, 2), 0.3F);
  EXPECT_EQ(ValueOfRow(OfClasses::kLikeliest, row, 2), 0);
  EXPECT_EQ(ValueOfRow(OfClasses::kLikeliest, row, 1), 1);
  // Of equals the first is the likeliest: a model that tells nothing apart is not always right.
  const std::vector<float> even(3, 1.0F / 3);
  EXPECT_EQ(ValueOfRow(OfClasses::kLikeliest, even, 0), 1);
  EXPECT_EQ(ValueOfRow(OfClasses::kLikeliest, even, 1) + ValueOfRow(OfClasses::kLikeliest, even, 2), 0);
  for (const float odd : {-1.0F, 3.0F, 0.5F, 1e30F}) {
    EXPECT_EQ(ValueOfRow(OfClasses::kLabels, row, odd), 0) << odd;
    EXPECT_EQ(ValueOfRow(OfClasses::kLikeliest, row, odd), 0) << odd;
  }
  EXPECT_TRUE(std::isnan(ValueOfRow(OfClasses::kLabels, row, std::nanf(""))));
  EXPECT_TRUE(std::isnan(ValueOfRow(OfClasses::kLikeliest, std::vector<float>{0.5F, INFINITY, 0}, 0)));
}

TEST(MetricsTest, OneClassAloneOrNoRowsHasNoAuc) {
  EXPECT_TRUE(std::isnan(ValueOf(MetricDesc::AUC, {{0.5F}, {1}, {0}})));
  EXPECT_TRUE(std::isnan(Gauc(SampleOf({{0.5F}, {1}, {0}}))));
  for (const MetricDesc::Kind kind : KindsOfSums()) {
    EXPECT_TRUE(std::isnan(ValueOf(kind, {}))) << MetricDesc::Kind_Name(kind);
  }
}

TEST(MetricsTest, TiesCountHalf) {
  EXPECT_NEAR(ValueOf(MetricDesc::AUC, {{0.3F, 0.3F, 0.3F, 0.3F}, {1, 0, 1, 0}, {0, 0, 0, 0}}), 0.5, 1e-12);
}

}  // namespace
}  // namespace millrace
