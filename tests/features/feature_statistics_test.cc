#include "features/feature_statistics.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/numbers.h"
#include "core/rng.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

TEST(ExactSumTest, SumsAndSumsOfSquaresDoNotDependOnOrder) {
  Rng rng(1);
  std::vector<double> numbers;
  for (int i = 0; i < 10000; ++i) {
    const auto exponent = static_cast<int>(rng.Below(600)) - 300;
    numbers.push_back(std::ldexp(static_cast<double>(rng.Below(1U << 30)) - (1 << 29), exponent));
  }
  const auto sums = [&](size_t parts) {
    std::vector<ExactSum> sum(parts);
    std::vector<ExactSum> squares(parts);
    for (size_t i = 0; i < numbers.size(); ++i) {
      sum[i % parts].Add(numbers[i]);
      squares[i % parts].AddSquare(numbers[i]);
    }
    for (size_t i = 1; i < parts; ++i) {
      sum[0].Add(sum[i]);
      squares[0].Add(squares[i]);
    }
    return std::pair(sum[0].Value(), squares[0].Value());
  };
  const auto expected = sums(1);
  std::reverse(numbers.begin(), numbers.end());
  EXPECT_EQ(sums(1), expected);
  EXPECT_EQ(sums(7), expected);
}

TEST(ExactSumTest, SmallTermsSurviveLargeOnes) {
  ExactSum sum;
  for (const double term : {1e300, 1.0, -1e300, 5e-324, -3.0}) sum.Add(term);
  EXPECT_EQ(sum.Value(), -2.0L);
  ExactSum small;
  small.Add(5e-324);
  small.Add(5e-324);
  EXPECT_EQ(small.Value(), static_cast<long double>(2 * 5e-324));
}

/// The deviation of numbers, divided among sums.
double DeviationOf(const std::vector<double>& numbers) {
  ExactSum sum;
  ExactSum squares;
  ExactSum more;
  for (const double number : numbers) {
    sum.Add(number);
    (number > 0 ? squares : more).AddSquare(number);
  }
  squares.Add(more);
  return static_cast<double>(ExactSum::Deviation(sum, squares, static_cast<int64_t>(numbers.size())));
}

// They were subtracted as rounded numbers, so that nanoseconds of one second had no deviation, and became constant.
TEST(ExactSumTest, DeviationsOfNumbersThatLieCloseTogetherDoNotCancel) {
  EXPECT_EQ(DeviationOf({1764201600000000000.0, 1764201600000000256.0}), 128);
  EXPECT_EQ(DeviationOf({1.0, std::nextafter(1.0, 2)}), std::ldexp(1.0, -53));
  EXPECT_EQ(DeviationOf({1000000000.1, 1000000000.2, 1000000000.3}), 0.08164962889258424);
  EXPECT_EQ(DeviationOf({-3, -1}), 1);
  EXPECT_EQ(DeviationOf({0.1, 0.1, 0.1}), 0);
  EXPECT_EQ(DeviationOf({-1e9 / 3, -1e9 / 3, -1e9 / 3}), 0);
  EXPECT_EQ(DeviationOf({0, 0}), 0);
  // Squares beyond what a double holds, and below.
  EXPECT_EQ(DeviationOf({1e308, -1e308}), 1e308);
  EXPECT_EQ(DeviationOf({std::ldexp(1.0, -1073), 0}), std::ldexp(1.0, -1074));
}

TEST(QuantileCountsTest, PartsOfFewNumbersAreExact) {
  QuantileCounts counts;
  for (int i = 100; i > 0; --i) counts.Add(i);
  EXPECT_TRUE(counts.is_exact());
  EXPECT_EQ(counts.Boundaries(4), (std::vector<double>{26, 51, 76}));
  EXPECT_EQ(counts.Boundaries(2), (std::vector<double>{51}));
}

TEST(QuantileCountsTest, FrequentNumbersHaveOneBoundary) {
  QuantileCounts counts;
  for (int i = 0; i < 90; ++i) counts.Add(0);
  for (int i = 1; i <= 10; ++i) counts.Add(i);
  EXPECT_EQ(counts.Boundaries(10), (std::vector<double>{1}));
  QuantileCounts constant;
  constant.Add(-0.0);
  constant.Add(0.0);
  EXPECT_EQ(constant.Boundaries(10), std::vector<double>{});
}

TEST(QuantileCountsTest, ManyNumbersAreCloseAndDoNotDependOnHowTheyAreDivided) {
  constexpr int kNumbers = 300000;
  std::vector<QuantileCounts> parts(3);
  QuantileCounts all;
  QuantileCounts reversed;
  Rng rng(3);
  std::vector<double> numbers;
  for (int i = 0; i < kNumbers; ++i) {
    numbers.push_back(std::exp(static_cast<double>(rng.Below(1000000)) / 1e5) * (i % 2 == 0 ? 1 : -1));
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    all.Add(numbers[i]);
    parts[i < 1000 ? 0 : i < 100000 ? 1 : 2].Add(numbers[i]);
    reversed.Add(numbers[numbers.size() - 1 - i]);
  }
  parts[0].Add(parts[1]);
  parts[2].Add(parts[0]);
  EXPECT_FALSE(all.is_exact());
  EXPECT_EQ(parts[2].count(), kNumbers);
  const std::vector<double> boundaries = all.Boundaries(100);
  EXPECT_EQ(parts[2].Boundaries(100), boundaries);
  EXPECT_EQ(reversed.Boundaries(100), boundaries);
  ASSERT_EQ(boundaries.size(), 99U);
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const double exact = numbers[(i + 1) * kNumbers / 100];
    EXPECT_NEAR(boundaries[i], exact, 1e-3 * std::abs(exact));
  }
}

DataFeedDesc StatisticsDescOf(const std::string& text) {
  DataFeedDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &desc)) << text;
  return desc;
}

std::string MessageOf(const FeatureStatistics& statistics) {
  std::string message;
  WireWriter out(&message);
  statistics.Put(&out);
  return message;
}

/// What rows of values of the columns give, divided among gatherers, of which every other one comes in a message.
std::string StatesOf(const DataFeedDesc& desc, const std::vector<std::vector<std::string>>& rows, size_t parts) {
  std::vector<std::unique_ptr<FeatureStatistics>> all;
  for (size_t i = 0; i < parts; ++i) all.push_back(FeatureStatistics::Create(desc).value());
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> padded = rows[i];
    std::vector<std::string_view> texts;
    for (std::string& text : padded) {
      const size_t size = text.size();
      text.append(kNumberPadding, '\0');
      texts.push_back(std::string_view(text).substr(0, size));
    }
    EXPECT_TRUE(all[i % parts]->AddRow(texts));
  }
  for (size_t i = 1; i < parts; ++i) {
    if (i % 2 == 0) {
      all[0]->Add(*all[i]);
      continue;
    }
    const std::string message = MessageOf(*all[i]);
    WireReader in(message);
    EXPECT_TRUE(all[0]->AddFrom(&in).ok());
  }
  FeatureStates states;
  const Status status = all[0]->Finish(&states);
  return status.ok() ? states.ShortDebugString() : status.message();
}

TEST(FeatureStatisticsTest, GathersWhatTheFeaturesLack) {
  const DataFeedDesc desc = StatisticsDescOf(R"(
      feature { name: "z" from: ["a", "b"] standardize {} }
      feature { name: "given" from: "a" standardize { mean: 0 deviation: 1 } }
      feature { name: "q" from: "a" bucketize { quantiles: 2 } }
      feature { name: "v" from: "t" split {} vocabulary { min_count: 2 } })");
  ASSERT_TRUE(NeedsStatistics(desc));
  const std::vector<std::vector<std::string>> rows = {
      {"1", "5", "x|y|b"}, {"3", "", "y|x|a"}, {"2", "5", "y"}, {"nan", "5", "a"}};
  const std::string expected =
      R"(feature { name: "z" mean: 2 mean: 5 deviation: 0.816496580927726 deviation: 1 numbers: 3 numbers: 3 } )"
      R"(feature { name: "q" boundary: 2 numbers: 3 } )"
      R"(feature { name: "v" word: "y" word: "a" word: "x" count: 3 count: 2 count: 2 other_words: 1 other_count: 1 } rows: 4)";
  EXPECT_EQ(StatesOf(desc, rows, 1), expected);
  EXPECT_EQ(StatesOf(desc, rows, 3), expected);
}

TEST(FeatureStatisticsTest, AMessageThatWasCutIsRefused) {
  const DataFeedDesc desc = StatisticsDescOf(R"(
      feature { name: "z" from: "a" standardize {} }
      feature { name: "q" from: "a" bucketize { quantiles: 2 } }
      feature { name: "v" from: "t" vocabulary { min_count: 1 } })");
  std::string row = "1.5";
  row.append(kNumberPadding, '\0');
  const std::unique_ptr<FeatureStatistics> gathered = FeatureStatistics::Create(desc).value();
  ASSERT_TRUE(gathered->AddRow(std::vector<std::string_view>{std::string_view(row).substr(0, 3), "word"}));
  const std::string message = MessageOf(*gathered);
  for (size_t size = 0; size < message.size(); ++size) {
    WireReader in(std::string_view(message).substr(0, size));
    EXPECT_EQ(FeatureStatistics::Create(desc).value()->AddFrom(&in).code(), StatusCode::kInternal) << size;
  }
}

// default: "0" put its zeros into means and deviations. A word that stands for missing texts is one of the words.
TEST(FeatureStatisticsTest, MissingNumbersAreLeftOutWhateverStandsForThem) {
  const DataFeedDesc desc = StatisticsDescOf(R"(
      feature { name: "z" from: "a" default: "300" standardize {} }
      feature { name: "parts" from: "a" split {} default: "300" standardize {} }
      feature { name: "q" from: "a" default: "300" bucketize { quantiles: 2 } }
      feature { name: "v" from: "a" default: "none" vocabulary { max_size: 2 } })");
  EXPECT_EQ(StatesOf(desc, {{"1"}, {""}, {""}, {"5"}}, 1),
            R"(feature { name: "z" mean: 3 deviation: 2 numbers: 2 } )"
            R"(feature { name: "parts" mean: 3 deviation: 2 numbers: 2 } )"
            R"(feature { name: "q" boundary: 5 numbers: 2 } )"
            R"(feature { name: "v" word: "none" word: "1" count: 2 count: 1 other_words: 1 other_count: 1 } rows: 4)");
}

TEST(FeatureStatisticsTest, ADefaultFarFromTheNumbersIsTold) {
  DataFeedDesc desc = StatisticsDescOf(R"(
      feature { name: "z" from: ["a", "b"] default: "0" standardize {} }
      feature { name: "m" from: "a" default_from: MEDIAN standardize {} }
      feature { name: "word" hash {} })");
  const std::string states = StatesOf(desc, {{"290", "-1"}, {"310", "3"}}, 1);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(states, desc.mutable_feature_states())) << states;
  EXPECT_EQ(FarDefaults(desc),
            std::vector<std::string>{
                "feature \"z\": its default \"0\" lies 30 deviations from the mean of column \"a\", so that a missing "
                "value weighs more than any other; default_from: MEDIAN learns one that lies among the others"});
}

TEST(FeatureStatisticsTest, DefaultsAreLearnedOfEachColumnAfterClip) {
  DataFeedDesc desc = StatisticsDescOf(R"(
      feature { name: "mean" from: ["a", "b"] default_from: MEAN clip { max: 100 } standardize {} }
      feature { name: "median" from: ["a", "b"] default_from: MEDIAN log1p {} }
      feature { name: "min" from: "a" default_from: MIN bucketize { quantiles: 2 } }
      feature { name: "time" from: "t" default_from: MEDIAN date_part {} bucketize { boundaries: [6, 12] } })");
  ASSERT_TRUE(NeedsStatistics(desc));
  const std::vector<std::vector<std::string>> rows = {{"1", "", "2026-11-30 05:00"},
                                                      {"", "4", ""},
                                                      {"1000", "nan", "2026-11-30 07:00"},
                                                      {"10", "8", "2026-11-30 09:00"}};
  const std::string expected =
      R"(feature { name: "mean" mean: 37 mean: 6 deviation: 44.698993277254019 deviation: 2 numbers: 3 numbers: 2 )"
      R"(default_number: 37 default_number: 6 } )"
      R"(feature { name: "median" default_number: 10 default_number: 4 } )"
      R"(feature { name: "min" boundary: 10 numbers: 3 default_number: 1 } )"
      R"(feature { name: "time" default_number: 7 } rows: 4)";
  EXPECT_EQ(StatesOf(desc, rows, 1), expected);
  EXPECT_EQ(StatesOf(desc, rows, 3), expected);

  // A row without any has them, after the other steps.
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(expected, desc.mutable_feature_states()));
  EXPECT_FALSE(NeedsStatistics(desc));
  const std::vector<std::string> slots = {"mean", "median", "min", "time"};
  FeatureRow row(FeaturePlan::Create(desc, slots).value());
  ASSERT_TRUE(row.Make(std::vector<std::string_view>(3)));
  EXPECT_EQ(std::vector<float>(row.floats(0).begin(), row.floats(0).end()), (std::vector<float>{0, 0}));
  EXPECT_EQ(std::vector<float>(row.floats(1).begin(), row.floats(1).end()),
            (std::vector<float>{static_cast<float>(std::log1p(10)), static_cast<float>(std::log1p(4))}));
  EXPECT_EQ(row.ids(2)[0], 0U);
  EXPECT_EQ(row.ids(3)[0], 1U);
}

TEST(FeatureStatisticsTest, ADefaultThatNothingSaysIsAnError) {
  const DataFeedDesc desc = StatisticsDescOf(R"(feature { name: "x" from: ["a", "b"] default_from: MIN })");
  EXPECT_EQ(StatesOf(desc, {{"1", ""}, {"2", "nan"}}, 1),
            "feature \"x\": no row of the training files has a number in column \"b\", so that default_from has "
            "nothing to learn from");
  const std::vector<std::string> slots = {"x"};
  EXPECT_EQ(FeaturePlan::Create(desc, slots).status().message(),
            "data_desc.feature[0] (\"x\"): its default (default_from) is not known: a job that trains learns it, and "
            "its model keeps it");
}

// One made minus infinity of all others, and the message named one of these.
TEST(FeatureStatisticsTest, ANumberThatNoFloatHoldsIsABadValueOfItsRow) {
  const DataFeedDesc desc = StatisticsDescOf(R"(feature { name: "z" from: "a" standardize {} })");
  const std::unique_ptr<FeatureStatistics> gathered = FeatureStatistics::Create(desc).value();
  std::string most = "1.79769313486e+308";
  const size_t size = most.size();
  most.append(kNumberPadding, '\0');
  EXPECT_FALSE(gathered->AddRow(std::vector<std::string_view>{std::string_view(most).substr(0, size)}));
  EXPECT_EQ(gathered->error().expected,
            "a number of at most 3.4e38, as a mean of them is learned (clip keeps it in a range)");
  EXPECT_EQ(StatesOf(StatisticsDescOf(R"(feature { name: "z" from: "a" clip { max: 3 } standardize {} })"),
                     {{"1"}, {"1.79769313486e+308"}}, 1),
            R"(feature { name: "z" mean: 2 deviation: 1 numbers: 2 } rows: 2)");
}

// The check came after log1p, and the default is learned before it: one row made it 1e+306.
TEST(FeatureStatisticsTest, ADefaultLearnsNothingFromANumberThatNoFloatHolds) {
  const auto of_row = [](const std::string& steps, std::string number) {
    const DataFeedDesc desc = StatisticsDescOf("feature { name: \"z\" from: \"a\" " + steps + " }");
    const std::unique_ptr<FeatureStatistics> gathered = FeatureStatistics::Create(desc).value();
    const size_t size = number.size();
    number.append(kNumberPadding, '\0');
    const std::vector<std::string_view> row = {std::string_view(number).substr(0, size)};
    return gathered->AddRow(row) ? "" : gathered->error().expected;
  };
  const std::string refused = "a number of at most 3.4e38, as default_from learns from it (clip keeps it in a range)";
  for (const char* steps : {"default_from: MEAN log1p {}", "default_from: MEAN", "default_from: MEDIAN",
                            "default_from: MIN", "default_from: MEAN bucketize { boundaries: 1 }"}) {
    EXPECT_EQ(of_row(steps, "1.7e308"), refused) << steps;
    EXPECT_EQ(of_row(steps, "3.4e38"), "") << steps;
    EXPECT_EQ(of_row(steps, "inf"), "") << steps;
    EXPECT_EQ(of_row(std::string("clip { max: 9 } ") + steps, "1.7e308"), "") << steps;
  }
  for (const char* steps : {"default_from: MEDIAN log1p {}", "default_from: MIN bucketize { boundaries: 1 }"}) {
    EXPECT_EQ(of_row(steps, "1.7e308"), "") << steps;
  }
}

TEST(FeatureStatisticsTest, WhatNoRowHasIsAnError) {
  EXPECT_EQ(
      StatesOf(StatisticsDescOf(R"(feature { name: "z" from: "a" standardize {} })"), {{""}}, 1),
      "feature \"z\": no row of the training files has a number to take a mean of, so that it cannot be standardized");
  EXPECT_EQ(
      StatesOf(StatisticsDescOf(R"(feature { name: "v" from: "a" vocabulary { min_count: 3 } })"), {{"x"}, {"y"}}, 1),
      "feature \"v\": none of its 2 texts stands 3 times in the training files (min_count), so that its vocabulary is "
      "empty");
}

TEST(FeatureStatisticsTest, APlanTakesWhatWasGathered) {
  DataFeedDesc desc = StatisticsDescOf(R"(feature { name: "v" from: "t" vocabulary { max_size: 1 } })");
  const std::vector<std::string> slots = {"v"};
  EXPECT_EQ(FeaturePlan::Create(desc, slots).status().message(),
            "data_desc.feature[0] (\"v\"): the words of its vocabulary are not known: a job that trains reads them, "
            "and its model keeps them");
  desc.mutable_feature_states()->add_feature()->set_name("v");
  desc.mutable_feature_states()->mutable_feature(0)->add_word("x");
  EXPECT_TRUE(FeaturePlan::Create(desc, slots).ok());
  EXPECT_FALSE(NeedsStatistics(desc));
}

}  // namespace
}  // namespace millrace
