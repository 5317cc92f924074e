#include "table/unique_keys.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

#include "allocation_counter.h"

namespace millrace {
namespace {

TEST(UniqueKeys, NumbersAsAMapWouldBatchAfterBatch) {
  std::mt19937_64 rng(11);
  UniqueKeys unique;
  std::vector<uint64_t> keys;
  for (int batch = 0; batch < 300; ++batch) {
    const size_t count = rng() % 500;
    const uint64_t range = 1 + rng() % 700;
    std::unordered_map<uint64_t, uint32_t> model;
    keys.resize(count);
    uint32_t distinct = 0;
    unique.Start(count);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t key = rng() % range * (batch % 3 == 0 ? 0x1000000000000ULL : 1);
      const uint32_t expected = model.try_emplace(key, static_cast<uint32_t>(model.size())).first->second;
      ASSERT_EQ(unique.Number(key, keys.data(), &distinct), expected);
    }
    ASSERT_EQ(distinct, model.size());
    for (const auto& [key, number] : model) ASSERT_EQ(keys[number], key);
  }
}

TEST(UniqueKeys, ASecondRoundGoesOnBehindTheFirst) {
  UniqueKeys unique;
  std::vector<uint64_t> keys(5);
  uint32_t distinct = 0;
  unique.Start(3);
  for (const uint64_t key : {7, 8, 7}) unique.Number(key, keys.data(), &distinct);
  unique.Start(3);
  std::vector<uint32_t> numbers;
  for (const uint64_t key : {9, 7, 9}) numbers.push_back(unique.Number(key, keys.data(), &distinct));
  EXPECT_EQ(numbers, (std::vector<uint32_t>{2, 3, 2})) << "keys of the first round are forgotten";
  EXPECT_EQ(distinct, 4U);
  keys.resize(distinct);
  EXPECT_EQ(keys, (std::vector<uint64_t>{7, 8, 9, 7}));
}

TEST(UniqueKeys, WarmBatchesAllocateNothing) {
  UniqueKeys unique;
  std::vector<uint64_t> keys(1000);
  unique.Start(1000);
  const AllocationCounter counter;
  for (int batch = 0; batch < 10; ++batch) {
    uint32_t distinct = 0;
    unique.Start(1000 - static_cast<size_t>(batch) * 90);
    for (uint64_t i = 0; i < 100; ++i) unique.Number(i % 37, keys.data(), &distinct);
  }
  EXPECT_EQ(counter.count(), 0);
}

}  // namespace
}  // namespace millrace
