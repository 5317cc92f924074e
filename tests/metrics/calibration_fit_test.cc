#include "metrics/calibration_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace millrace {
namespace {

using testing::HasSubstr;

struct Drawn {
  std::vector<float> predictions;
  std::vector<float> labels;
  std::vector<float> weights;
};

Result<CalibrationFit> Fit(const Drawn& rows, bool isotonic) {
  const std::unique_ptr<Metric> metric = MakeCalibrationSums();
  MetricSums sums(metric->size());
  metric->Add({rows.predictions, rows.labels, rows.weights}, sums);
  std::vector<double> all;
  for (size_t i = 0; i < sums.size(); ++i) all.push_back(sums.Get(i));
  return FitCalibration(all, std::nullopt, isotonic);
}

Result<CalibrationFit> FitExamples(const Drawn& rows, bool isotonic) {
  const std::unique_ptr<Metric> metric = MakeCalibrationSums();
  MetricSums sums(metric->size());
  ExampleRows examples;
  for (size_t i = 0; i < rows.labels.size(); ++i) {
    const MetricRows one{{&rows.predictions[i], 1}, {&rows.labels[i], 1}};
    metric->Add(one, sums);
    examples.Add(one);
  }
  std::vector<double> all;
  for (size_t i = 0; i < sums.size(); ++i) all.push_back(sums.Get(i));
  return FitCalibration(all, examples.Sorted(), isotonic);
}

float Sigmoid(double z) { return static_cast<float>(1 / (1 + std::exp(-z))); }

/// Labels of which as many are 1 as `slope` and `intercept` say of the logit that is predicted.
Drawn Draw(int count, double slope, double intercept) {
  std::mt19937 random(7);
  Drawn rows;
  for (int i = 0; i < count; ++i) {
    const double logit = static_cast<double>(random() % 600) / 100 - 4;
    rows.predictions.push_back(Sigmoid(logit));
    const float share = Sigmoid(slope * logit + intercept);
    rows.labels.push_back(static_cast<float>(random()) / 4294967296.0F < share ? 1.0F : 0.0F);
  }
  return rows;
}

TEST(CalibrationFit, ALineFindsTheSlopeThatLabelsWereDrawnBy) {
  const Result<CalibrationFit> fit = Fit(Draw(200000, 0.5, -0.7), false);
  ASSERT_TRUE(fit.ok()) << fit.status().ToString();
  EXPECT_NEAR(fit->slope, 0.5, 0.02);
  EXPECT_NEAR(fit->intercept, -0.7, 0.03);
  EXPECT_NEAR(fit->after.calibration, 1, 1e-3);
  EXPECT_LT(fit->after.logloss, fit->before.logloss);
}

TEST(CalibrationFit, PredictionsOfOneStepAreToldApartByTheExamplesThemselves) {
  Drawn rows;
  for (int i = 0; i < 2000; ++i) {
    rows.predictions.push_back(Sigmoid(-4 + 1e-7 * i));
    rows.labels.push_back(i < 1000 ? 0.0F : 1.0F);
  }
  for (const bool isotonic : {false, true}) {
    const CalibrationFit fit = FitExamples(rows, isotonic).value();
    EXPECT_LT(Calibrated(fit.map(), rows.predictions.front()), 0.02);
    EXPECT_GT(Calibrated(fit.map(), rows.predictions.back()), 0.98);
    EXPECT_NEAR(fit.after.calibration, 1, 1e-3);
  }
}

TEST(CalibrationFit, ValuesNeverFallAndMeetTheMeanLabelsButAtTheEnds) {
  const Drawn rows{{0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F}, {0, 1, 0, 0, 1, 1}, {}};
  const Result<CalibrationFit> fit = Fit(rows, true);
  ASSERT_TRUE(fit.ok()) << fit.status().ToString();
  EXPECT_THAT(fit->points, testing::Pointwise(testing::FloatEq(), {0.1F, 0.2F, 0.4F, 0.5F, 0.6F}));
  EXPECT_THAT(fit->values, testing::Pointwise(testing::FloatEq(), {1 / 3.0F, 1 / 3.0F, 1 / 3.0F, 0.75F, 0.75F}));
  EXPECT_FLOAT_EQ(Calibrated(fit->map(), 0.45F), (1 / 3.0F + 0.75F) / 2) << "between two points lies a line";
  EXPECT_FLOAT_EQ(Calibrated(fit->map(), 0.01F), 1 / 3.0F);
  EXPECT_FLOAT_EQ(Calibrated(fit->map(), 0.99F), 0.75F);
  EXPECT_TRUE(std::isnan(Calibrated(fit->map(), std::nanf(""))));
}

TEST(CalibrationFit, IsotonicGivesNeither0Nor1) {
  Drawn rows;
  for (int i = 0; i < 1000; ++i) {
    rows.predictions.push_back(static_cast<float>(i + 1) / 1002);
    rows.labels.push_back(i < 98 || (i < 902 && i % 2 == 0) ? 0.0F : 1.0F);
  }
  const Result<CalibrationFit> fit = Fit(rows, true);
  ASSERT_TRUE(fit.ok()) << fit.status().ToString();
  EXPECT_FLOAT_EQ(fit->values.front(), 1 / 101.0F) << "of the 99 up to the first 1";
  EXPECT_NEAR(fit->values.back(), 1 - 1 / 101.0, 1e-3);
  EXPECT_NEAR(fit->after.calibration, 1, 2e-3);
}

TEST(CalibrationFit, AWeightOfTwoIsTwoExamplesAndAllWeightsTimesTenAreTheSame) {
  for (const bool isotonic : {false, true}) {
    Drawn once = Draw(500, 1, 0);
    Drawn twice = once;
    Drawn tenfold = once;
    for (size_t i = 0; i < 500; ++i) {
      const float weight = i % 2 == 0 ? 1.0F : 2.0F;
      once.weights.push_back(weight);
      tenfold.weights.push_back(10 * weight);
      if (weight == 1) continue;
      twice.predictions.push_back(once.predictions[i]);
      twice.labels.push_back(once.labels[i]);
    }
    const Result<CalibrationFit> a = Fit(once, isotonic);
    const Result<CalibrationFit> b = Fit(twice, isotonic);
    const Result<CalibrationFit> c = Fit(tenfold, isotonic);
    ASSERT_TRUE(a.ok() && b.ok() && c.ok());
    for (const float p : {0.05F, 0.2F, 0.5F, 0.8F}) {
      // Platt's labels depend on how many examples there are, a little.
      EXPECT_NEAR(Calibrated(a->map(), p), Calibrated(b->map(), p), isotonic ? 1e-6 : 3e-3);
      EXPECT_NEAR(Calibrated(a->map(), p), Calibrated(c->map(), p), 1e-6);
    }
  }
}

TEST(CalibrationFit, OfOnePredictionAloneBecomesTheMeanLabel) {
  const Drawn rows{{0.5F, 0.5F, 0.5F, 0.5F}, {0, 0, 0, 1}, {}};
  const Result<CalibrationFit> line = Fit(rows, false);
  ASSERT_TRUE(line.ok()) << line.status().ToString();
  EXPECT_EQ(line->slope, 1);
  EXPECT_NEAR(Calibrated(line->map(), 0.5F), (2.0 / 3 + 3 * 0.2) / 4, 1e-6) << "of Platt's labels";
  const Result<CalibrationFit> rising = Fit(rows, true);
  ASSERT_TRUE(rising.ok());
  EXPECT_FLOAT_EQ(Calibrated(rising->map(), 0.9F), 0.25F);
}

TEST(CalibrationFit, EndsAlsoWherePredictionsPartTheLabelsAndLieAtTheEnds) {
  const Result<CalibrationFit> fit = Fit({{0, 0, 1e-20F, 1, 1, 0.9999999F}, {0, 0, 0, 1, 1, 1}, {}}, false);
  ASSERT_TRUE(fit.ok());
  EXPECT_TRUE(std::isfinite(fit->slope) && fit->slope > 0) << fit->slope;
  EXPECT_GT(Calibrated(fit->map(), 1), 0.7F);
  EXPECT_LT(Calibrated(fit->map(), 0), 0.3F);
}

TEST(CalibrationFit, SharesAreLabels) {
  const Result<CalibrationFit> shares = Fit({{0.2F, 0.6F}, {0.25F, 0.5F}, {}}, true);
  ASSERT_TRUE(shares.ok());
  EXPECT_THAT(shares->values, testing::ElementsAre(0.25F, 0.5F));
}

TEST(CalibrationFit, SaysWhyThereIsNone) {
  const auto why = [](const Drawn& rows) { return Fit(rows, false).status().message(); };
  EXPECT_THAT(why({}), HasSubstr("all are masked, or weigh 0"));
  EXPECT_THAT(why({{0.1F, 0.2F}, {0, 0}, {}}), HasSubstr("have the label 0"));
  EXPECT_THAT(why({{0.1F, 0.2F}, {1, 1}, {}}), HasSubstr("have the label 1"));
  EXPECT_THAT(why({{1.5F, 0.2F, -1}, {1, 0, 1}, {}}), HasSubstr("2 have a prediction below 0 or above 1"));
}

}  // namespace
}  // namespace millrace
