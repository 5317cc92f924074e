#include "clickgen/attainable.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/rng.h"

namespace millrace {
namespace {

struct Scored {
  double probability;
  bool clicked;
};

// Every pair of a clicked and an ignored row, one by one.
double AucByPairs(const std::vector<Scored>& rows) {
  double won = 0;
  double pairs = 0;
  for (const Scored& clicked : rows) {
    for (const Scored& ignored : rows) {
      if (!clicked.clicked || ignored.clicked) continue;
      pairs += 1;
      won += clicked.probability > ignored.probability ? 1 : clicked.probability == ignored.probability ? 0.5 : 0;
    }
  }
  return won / pairs;
}

TEST(Attainable, AgreesWithAllPairs) {
  Rng random(7);
  std::vector<Scored> rows;
  Attainable attainable;
  double log_loss = 0;
  for (int i = 0; i < 2000; ++i) {
    // Every second row takes one of 64 values, so that there are many ties.
    const double p = i % 2 == 0 ? (0.5 + static_cast<double>(random.Below(64))) / 64 : random.Uniform() + 1e-9;
    rows.push_back({p, random.Uniform() < p});
    attainable.Add(rows.back().probability, rows.back().clicked);
    log_loss -= std::log(rows.back().clicked ? p : 1 - p);
  }
  EXPECT_NEAR(attainable.Auc(), AucByPairs(rows), 1e-5);
  EXPECT_NEAR(attainable.LogLoss(), log_loss / 2000, 1e-12);
  EXPECT_EQ(attainable.rows(), 2000);
}

TEST(Attainable, PerfectAndInvertedScores) {
  Attainable perfect;
  Attainable inverted;
  for (bool clicked : {false, true, true, false}) {
    perfect.Add(clicked ? 0.9 : 0.1, clicked);
    inverted.Add(clicked ? 0.1 : 0.9, clicked);
  }
  EXPECT_EQ(perfect.Auc(), 1);
  EXPECT_EQ(inverted.Auc(), 0);
  EXPECT_EQ(perfect.click_rate(), 0.5);
}

TEST(Attainable, EqualLabelsSayNothing) {
  Attainable attainable;
  EXPECT_EQ(attainable.Auc(), 0.5);
  attainable.Add(0.3, true);
  EXPECT_EQ(attainable.Auc(), 0.5);
}

TEST(Attainable, TheEndsHaveBuckets) {
  Attainable attainable;
  attainable.Add(1.0, true);
  attainable.Add(0.0, false);
  EXPECT_EQ(attainable.Auc(), 1);
}

}  // namespace
}  // namespace millrace
