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
    keys.clear();
    unique.Start(count);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t key = rng() % range * (batch % 3 == 0 ? 0x1000000000000ULL : 1);
      const uint32_t expected = model.try_emplace(key, static_cast<uint32_t>(model.size())).first->second;
      ASSERT_EQ(unique.Number(key, keys), expected);
    }
    ASSERT_EQ(keys.size(), model.size());
    for (const auto& [key, number] : model) ASSERT_EQ(keys[number], key);
  }
}

TEST(UniqueKeys, WarmBatchesAllocateNothing) {
  UniqueKeys unique;
  std::vector<uint64_t> keys;
  keys.reserve(1000);
  unique.Start(1000);
  const AllocationCounter counter;
  for (int batch = 0; batch < 10; ++batch) {
    keys.clear();
    unique.Start(1000 - static_cast<size_t>(batch) * 90);
    for (uint64_t i = 0; i < 100; ++i) unique.Number(i % 37, keys);
  }
  EXPECT_EQ(counter.count(), 0);
}

}  // namespace
}  // namespace millrace
