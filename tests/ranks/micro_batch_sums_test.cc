#include "ranks/micro_batch_sums.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "allocation_counter.h"

namespace millrace {
namespace {

void Append(int first, int count, bool has_values, const DenseValues& values, MicroBatchSums<DenseValues>* sums) {
  has_values ? sums->Append(first, count, FloatView(values.values)) : sums->AppendNothing(first, count);
}
void Append(int first, int count, bool has_values, RowValues rows, MicroBatchSums<RowValues>* sums) {
  has_values ? sums->Append(first, count, rows) : sums->AppendNothing(first, count);
}

/// Micro-batches dealt to ranks in a row: what each adds by itself, then whoever has all pieces adds on.
template <class Values>
MicroBatchSums<Values> Add(const std::vector<std::pair<bool, Values>>& micro_batches, const std::vector<size_t>& cuts) {
  MicroBatchSums<Values> all;
  for (size_t r = 0; r + 1 < cuts.size(); ++r) {
    MicroBatchSums<Values> of_rank;
    for (size_t m = cuts[r]; m < cuts[r + 1]; ++m) {
      const auto& [has_values, values] = micro_batches[m];
      Append(static_cast<int>(m), 1, has_values, values, &of_rank);
    }
    for (const auto& piece : of_rank.pieces()) Append(piece.first, piece.count, piece.has_values, piece.values, &all);
  }
  return all;
}

/// Where ranks begin, and the end.
rc::Gen<std::vector<size_t>> Cuts(size_t micro_batches) {
  return rc::gen::map(rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, micro_batches + 1)),
                      [micro_batches](std::vector<size_t> cuts) {
                        cuts.push_back(0);
                        cuts.push_back(micro_batches);
                        std::sort(cuts.begin(), cuts.end());
                        return cuts;
                      });
}

float AnyFloat() { return static_cast<float>(*rc::gen::inRange(-1'000'000, 1'000'000)) * 1.1e-5f; }

RC_GTEST_PROP(MicroBatchSumsTest, TheSumOfDenseGradientsIsTheSameToTheBitHoweverTheyAreDealt, ()) {
  const auto count = *rc::gen::inRange<size_t>(1, 20);
  std::vector<std::pair<bool, DenseValues>> micro_batches(count);
  for (auto& [has_values, values] : micro_batches) {
    has_values = *rc::gen::weightedElement<bool>({{4, true}, {1, false}});
    values.values = {AnyFloat(), AnyFloat(), AnyFloat()};
  }
  auto alone = Add(micro_batches, {0, count});
  auto dealt = Add(micro_batches, *Cuts(count));
  const DenseValues* const one = alone.Total();
  const DenseValues* const other = dealt.Total();
  RC_ASSERT((one == nullptr) == (other == nullptr));
  if (one != nullptr) RC_ASSERT(one->values == other->values);
}

RC_GTEST_PROP(MicroBatchSumsTest, TheSumOfRowsIsTheSameToTheBitHoweverTheyAreDealt, ()) {
  const auto count = *rc::gen::inRange<size_t>(1, 20);
  std::vector<std::pair<bool, RowValues>> micro_batches(count);
  std::map<uint64_t, double> expected;
  for (auto& [has_values, rows] : micro_batches) {
    has_values = *rc::gen::weightedElement<bool>({{4, true}, {1, false}});
    std::vector<uint64_t> keys = *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 12));
    std::vector<float> values;
    for (const uint64_t key : keys) {
      values.push_back(AnyFloat());
      values.push_back(AnyFloat());
      if (has_values) expected[key] += static_cast<double>(values[values.size() - 2]);
    }
    SumEqualKeys(keys, values.data(), 2, &rows);
  }
  auto alone = Add(micro_batches, {0, count});
  auto dealt = Add(micro_batches, *Cuts(count));
  const RowValues* const one = alone.Total();
  const RowValues* const other = dealt.Total();
  RC_ASSERT((one == nullptr) == (other == nullptr));
  if (one == nullptr) return;
  RC_ASSERT(one->keys == other->keys);
  RC_ASSERT(one->values == other->values);
  RC_ASSERT(one->keys.size() == expected.size());
  size_t i = 0;
  for (const auto& [key, sum] : expected) {
    RC_ASSERT(one->keys[i] == key);
    RC_ASSERT(std::abs(static_cast<double>(one->values[2 * i]) - sum) < 1e-3);
    ++i;
  }
}

TEST(MicroBatchSumsTest, NeighboursAreAddedFirstThenPairsOfThem) {
  // 1 + 1e8 - 1e8 + 1 in floats: (1 + 1e8) + (-1e8 + 1) = 0, one after the other 1.
  MicroBatchSums<DenseValues> sums;
  int m = 0;
  for (const float value : {1.0f, 1e8f, -1e8f, 1.0f}) sums.Append(m++, 1, FloatView(std::span(&value, 1)));
  ASSERT_EQ(sums.pieces().size(), 1U);
  EXPECT_EQ(sums.Total()->values[0], 0.0f);
}

TEST(MicroBatchSumsTest, BuffersOfAStepAreUsedAgainByTheNext) {
  const std::vector<float> values(1000, 1.0f);
  MicroBatchSums<DenseValues> sums;
  const auto add_four = [&] {
    for (int m = 0; m < 4; ++m) sums.Append(m, 1, FloatView(values));
    EXPECT_EQ(sums.Total()->values[999], 4.0f);
    sums.Clear();
  };
  add_four();
  add_four();  // the pieces themselves
  const AllocationCounter allocations;
  add_four();
  EXPECT_EQ(allocations.count(), 0);
}

TEST(MicroBatchSumsTest, ARankKeepsApartWhatOthersStandBetween) {
  MicroBatchSums<DenseValues> sums;
  const float one = 1.0f;
  for (int m = 3; m < 9; ++m) sums.Append(m, 1, FloatView(std::span(&one, 1)));
  // [3], [4, 8), [8]
  ASSERT_EQ(sums.pieces().size(), 3U);
  EXPECT_EQ(sums.pieces()[1].first, 4);
  EXPECT_EQ(sums.pieces()[1].count, 4);
}

}  // namespace
}  // namespace millrace
