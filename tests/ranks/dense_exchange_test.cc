// How ranks at their own pace share dense parameters.

#include "ranks/dense_exchange.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"
#include "dense_copy.h"
#include "ops/builtin_ops.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::Each;
using testing::FloatNear;
using testing::Ge;
using testing::Le;
using testing::Lt;

/// Compiles kProgram.
class DenseExchangeTest : public testing::Test {
 protected:
  void SetUp() override {
    RegisterBuiltinOps(ops_);
    ProgramDesc program;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kProgram, &program));
    Result<std::unique_ptr<const Executable>> compiled = Executable::Compile(program, ops_, {});
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    step_ = std::move(*compiled);
  }

  OpRegistry ops_;
  std::unique_ptr<const Executable> step_;
};

/// Each rank moves its copy by rank + 1 a batch, for so many batches; then all settle.
void MoveAndSettle(Communicator& communicator, const Executable& step, const DenseExchange::Options& options,
                   std::vector<std::unique_ptr<Copy>>& copies) {
  RankGroup ranks(communicator);
  const auto me = static_cast<size_t>(communicator.rank());
  copies[me] = std::make_unique<Copy>(100.0f);
  Copy& copy = *copies[me];
  Result<std::unique_ptr<DenseExchange>> exchange = DenseExchange::Create(step, copy.root, ranks, options);
  ASSERT_TRUE(exchange.ok()) << exchange.status().ToString();
  (*exchange)->Start();
  ASSERT_TRUE(communicator.Barrier().ok());
  for (int batch = 0; batch < 12; ++batch) {
    copy.Move(static_cast<float>(communicator.rank() + 1));
    ASSERT_TRUE((*exchange)->Step().ok());
    if (batch == 7) {
      ASSERT_TRUE((*exchange)->ExchangeNow().ok());
    }
  }
  ASSERT_TRUE((*exchange)->Settle().ok());
  ASSERT_TRUE(communicator.Barrier().ok());
}

void ExpectAllMoved(const std::vector<std::unique_ptr<Copy>>& copies) {
  const auto ranks = static_cast<float>(copies.size());
  const float moved = 12 * ranks * (ranks + 1) / 2;
  const float share = std::min(1.0f, 2 / ranks);
  for (const std::unique_ptr<Copy>& copy : copies) {
    // Of parameters, what was exchanged is there with its share or more, and what was not with the mean.
    for (const char* parameter : {"w", "b"}) {
      EXPECT_THAT(copy->Values(parameter), Each(AllOf(Ge(100 + moved / ranks - 0.001f), Le(100 + moved + 0.001f))));
    }
    EXPECT_THAT(copy->Values("acc"), Each(FloatNear(100 + share * moved, 0.001f)));
    EXPECT_THAT(copy->Values("mean"), Each(FloatNear(100 + moved / ranks, 0.001f)));
    EXPECT_EQ(copy->count(), 5 + 12 * static_cast<int64_t>(copies.size()));
    EXPECT_EQ(copy->Values("w"), copies[0]->Values("w"));
  }
}

TEST_F(DenseExchangeTest, AllThatRanksMovedIsThereOnEachBehindASettling) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const WireFloat wire : {WireFloat::kFloat32, WireFloat::kBFloat16}) {
      std::vector<std::unique_ptr<Copy>> copies(static_cast<size_t>(ranks));
      OnRanks(ranks, [&](Communicator& communicator) {
        const DenseExchange::Options options{
            .every = 2, .parameters_every = 2, .rest_every = 2, .small = kSmallSize, .wire = wire};
        MoveAndSettle(communicator, *step_, options, copies);
      });
      ExpectAllMoved(copies);
    }
  }
}

TEST_F(DenseExchangeTest, WhatAProgramCountsInFloatsIsAddedUp) {
  for (const int ranks : {2, 3, 5}) {
    for (const WireFloat wire : {WireFloat::kFloat32, WireFloat::kBFloat16}) {
      std::vector<std::unique_ptr<Copy>> copies(static_cast<size_t>(ranks));
      OnRanks(ranks, [&](Communicator& communicator) {
        const DenseExchange::Options options{
            .every = 2, .parameters_every = 2, .rest_every = 2, .wire = wire, .counters = {"mean", "w"}};
        MoveAndSettle(communicator, *step_, options, copies);
      });
      const auto all = static_cast<float>(12 * ranks * (ranks + 1)) / 2;
      for (const std::unique_ptr<Copy>& copy : copies) {
        EXPECT_THAT(copy->Values("mean"), Each(100 + all));
        if (ranks == 2) continue;  // where the moves of parameters are added up as well
        EXPECT_THAT(copy->Values("w"), Each(Lt(100 + all)));
      }
    }
  }
}

TEST_F(DenseExchangeTest, WhatParametersMovedSinceTheLastExchangeIsTheMeanOfThoseThatMovedThem) {
  std::vector<std::unique_ptr<Copy>> copies(3);
  OnRanks(3, [&](Communicator& communicator) {
    const auto r = static_cast<size_t>(communicator.rank());
    RankGroup ranks(communicator);
    copies[r] = std::make_unique<Copy>(100.0f);
    const auto exchange = DenseExchange::Create(*step_, copies[r]->root, ranks, {}).value();
    exchange->Start();
    ASSERT_TRUE(communicator.Barrier().ok());
    if (r < 2) copies[r]->Move(r == 0 ? 4.0f : 2.0f);
    ASSERT_TRUE(exchange->Settle().ok());
    // What one rank alone moves is not cut.
    if (r == 2) copies[r]->Move(6.0f);
    ASSERT_TRUE(exchange->Settle().ok());
    ASSERT_TRUE(communicator.Barrier().ok());
  });
  for (const std::unique_ptr<Copy>& copy : copies) {
    EXPECT_THAT(copy->Values("w"), Each(FloatNear(100 + 6 * 0.5f + 6 * 2 / 3.0f, 1e-4f)));
    EXPECT_THAT(copy->Values("acc"), Each(FloatNear(100 + (6 + 6) * 2 / 3.0f, 1e-4f)));
    EXPECT_EQ(copy->count(), 5 + 3);
  }
}

TEST_F(DenseExchangeTest, AnExchangeThatNobodyHasTrainedOnIsAMeanWhereRanksStandStill) {
  for (const int batches : {0, 1, 2, 4, 9}) {
    SCOPED_TRACE(batches);
    std::vector<std::unique_ptr<Copy>> copies(2);
    OnRanks(2, [&](Communicator& communicator) {
      const auto r = static_cast<size_t>(communicator.rank());
      RankGroup ranks(communicator);
      copies[r] = std::make_unique<Copy>(100.0f);
      // Exchanges by ExchangeNow alone.
      const DenseExchange::Options options{.every = 1000, .parameters_every = 4, .small = 0};
      const auto exchange = DenseExchange::Create(*step_, copies[r]->root, ranks, options).value();
      exchange->Start();
      ASSERT_TRUE(communicator.Barrier().ok());
      copies[r]->Move(r == 0 ? 6.0f : 2.0f);
      ASSERT_TRUE(exchange->ExchangeNow().ok());
      for (int batch = 0; batch < batches; ++batch) ASSERT_TRUE(exchange->Step().ok());
      ASSERT_TRUE(exchange->Settle().ok());
      ASSERT_TRUE(exchange->Settle().ok());
      ASSERT_TRUE(communicator.Barrier().ok());
    });
    const float untrained = std::max(0.0f, 1 - static_cast<float>(batches) / 4);
    for (const std::unique_ptr<Copy>& copy : copies) {
      EXPECT_THAT(copy->Values("w"), Each(FloatNear(100 + 8 * (1 - untrained / 2), 1e-4f)));
      EXPECT_THAT(copy->Values("acc"), Each(FloatNear(100 + 8, 1e-4f)));
    }
  }
}

TEST_F(DenseExchangeTest, OfOptimizersThatScaleTheirStepsManyRanksHaveTheMean) {
  std::string text = kProgram;
  text.replace(text.find("\"adagrad\""), 9, "\"decayed_adagrad\"");
  ProgramDesc program;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &program));
  const auto step = Executable::Compile(program, ops_, {}).value();
  OnRanks(4, [&](Communicator& communicator) {
    RankGroup ranks(communicator);
    Copy copy(0.0f);
    const auto exchange = DenseExchange::Create(*step, copy.root, ranks, {}).value();
    exchange->Start();
    ASSERT_TRUE(communicator.Barrier().ok());
    copy.Move(1.0f);
    for (int round = 0; round < 60; ++round) {
      ASSERT_TRUE(exchange->ExchangeNow().ok());
      ASSERT_TRUE(communicator.Barrier().ok());
    }
    ASSERT_TRUE(exchange->Settle().ok());
    EXPECT_THAT(copy.Values("w"), Each(FloatNear(1, 1e-3f)));
    EXPECT_THAT(copy.Values("b"), Each(FloatNear(4, 1e-3f))) << "which sgd updates";
    ASSERT_TRUE(communicator.Barrier().ok());
  });
}

// Four ranks move once, and exchange until nothing comes any more.
TEST_F(DenseExchangeTest, AllThatManyRanksMovedArrivesLittleByLittle) {
  const auto seen = OnRanks(4, [&](Communicator& communicator) {
    RankGroup ranks(communicator);
    Copy copy(0.0f);
    const auto exchange = DenseExchange::Create(*step_, copy.root, ranks, {}).value();
    exchange->Start();
    EXPECT_TRUE(communicator.Barrier().ok());
    copy.Move(1.0f);
    std::vector<float> values;
    for (int round = 0; round < 60; ++round) {
      EXPECT_TRUE(exchange->ExchangeNow().ok());
      EXPECT_TRUE(communicator.Barrier().ok());
      values.push_back(copy.Values("w")[0]);
      if (round != 5) continue;
      // A pass ends, and the next one begins.
      EXPECT_TRUE(exchange->Settle().ok());
      exchange->Start();
      EXPECT_TRUE(communicator.Barrier().ok());
    }
    EXPECT_TRUE(exchange->Settle().ok());
    EXPECT_THAT(copy.Values("w"), Each(FloatNear(4, 1e-3f)));
    EXPECT_THAT(copy.Values("acc"), Each(FloatNear(2, 1e-3f))) << "of other sums the share comes, at once";
    EXPECT_TRUE(communicator.Barrier().ok());
    return values;
  });
  for (const std::vector<float>& values : seen) {
    EXPECT_LT(values[1], 2.8f) << "half at once, and a fifth of the rest a round";
    EXPECT_GT(values[1], 2.0f);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  }
}

TEST_F(DenseExchangeTest, WhateverTheNetworkDelays) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::unique_ptr<Copy>> copies(3);
    SimulatedCluster cluster({.size = 3, .seed = seed, .longest_delay = 60});
    const DenseExchange::Options options{.parameters_every = 2, .rest_every = 3, .small = kSmallSize};
    const Status ran = cluster.Run([&](Communicator& rank) { MoveAndSettle(rank, *step_, options, copies); });
    ASSERT_TRUE(ran.ok()) << ran.ToString();
    ExpectAllMoved(copies);
  }
}

TEST_F(DenseExchangeTest, SmallVariablesGoMoreOftenThanLargeOnesAndThoseMoreOftenThanTheRest) {
  std::vector<std::array<float, 3>> seen;
  OnRanks(2, [&](Communicator& communicator) {
    RankGroup ranks(communicator);
    Copy copy(0.0f);
    const DenseExchange::Options options{.parameters_every = 2, .rest_every = 2, .small = kSmallSize};
    const std::unique_ptr<DenseExchange> exchange = DenseExchange::Create(*step_, copy.root, ranks, options).value();
    exchange->Start();
    ASSERT_TRUE(communicator.Barrier().ok());
    for (int batch = 0; batch < 4; ++batch) {
      if (ranks.rank() == 0) copy.Move(1);
      // One after the other: what rank 0 tells its owners is with them when rank 1 asks.
      for (int turn = 0; turn < 2; ++turn) {
        if (turn == ranks.rank()) {
          ASSERT_TRUE(exchange->Step().ok());
          ASSERT_TRUE(exchange->Wait().ok());
        }
        ASSERT_TRUE(communicator.Barrier().ok());
      }
      if (ranks.rank() == 1) seen.push_back({copy.Values("b")[0], copy.Values("w")[0], copy.Values("acc")[0]});
    }
  });
  using Row = std::array<float, 3>;
  EXPECT_THAT(seen, testing::ElementsAre(Row{1, 0, 0}, Row{2, 2, 0}, Row{3, 2, 0}, Row{4, 4, 4}));
}

TEST_F(DenseExchangeTest, WhatSixteenBitsCutOffTravelsWithTheNextExchanges) {
  std::vector<float> seen;
  OnRanks(2, [&](Communicator& communicator) {
    RankGroup ranks(communicator);
    Copy copy(0.0f);
    const DenseExchange::Options options{.wire = WireFloat::kBFloat16};
    const std::unique_ptr<DenseExchange> exchange = DenseExchange::Create(*step_, copy.root, ranks, options).value();
    exchange->Start();
    ASSERT_TRUE(communicator.Barrier().ok());
    // 1 + 2^-12 has more bits than bfloat16: an exchange brings 1, the next ones the rest.
    if (ranks.rank() == 0) copy.Move(1.000244140625f);
    for (int i = 0; i < 2; ++i) {
      if (ranks.rank() == 0) {
        ASSERT_TRUE(exchange->ExchangeNow().ok());
      }
      ASSERT_TRUE(communicator.Barrier().ok());
      if (ranks.rank() == 1) {
        ASSERT_TRUE(exchange->ExchangeNow().ok());
        seen.push_back(copy.Values("w")[0]);
      }
      ASSERT_TRUE(communicator.Barrier().ok());
    }
  });
  EXPECT_EQ(seen[0], 1.0f);
  EXPECT_EQ(seen[1], 1.000244140625f);
}

}  // namespace
}  // namespace millrace
