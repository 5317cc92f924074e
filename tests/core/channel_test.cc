#include "core/channel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "allocation_counter.h"

namespace millrace {
namespace {

struct Item {
  int producer = 0;
  int number = 0;
};
using ItemPtr = std::unique_ptr<Item>;

/// Sends `per_producer` items from each producer; returns what each consumer got, in its order.
std::vector<std::vector<Item>> Exchange(int producers, int consumers, int per_producer, size_t capacity) {
  Channel<ItemPtr> channel(capacity);
  std::vector<std::vector<Item>> got(static_cast<size_t>(consumers));
  {
    std::vector<std::jthread> readers;
    for (std::vector<Item>& mine : got) {
      readers.emplace_back([&channel, &mine] {
        for (;;) {
          Result<std::optional<ItemPtr>> item = channel.Pop({});
          ASSERT_TRUE(item.ok()) << item.status().ToString();
          if (!*item) return;
          mine.push_back(***item);
        }
      });
    }
    {
      std::vector<std::jthread> writers;
      for (int p = 0; p < producers; ++p) {
        writers.emplace_back([&channel, p, per_producer] {
          for (int i = 0; i < per_producer; ++i) {
            ASSERT_TRUE(channel.Push(std::make_unique<Item>(Item{p, i}), {}).ok());
          }
        });
      }
    }
    channel.Close(Status::Ok());
  }
  return got;
}

class ChannelExchange : public testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(ChannelExchange, LosesDoublesAndReordersNothing) {
  const auto [producers, consumers, capacity] = GetParam();
  const int per_producer = 4000;
  const auto got = Exchange(producers, consumers, per_producer, static_cast<size_t>(capacity));
  std::vector<std::vector<int>> seen(static_cast<size_t>(producers), std::vector<int>(per_producer, 0));
  for (const std::vector<Item>& mine : got) {
    std::vector<int> last(static_cast<size_t>(producers), -1);
    for (const Item& item : mine) {
      const auto p = static_cast<size_t>(item.producer);
      ++seen[p][static_cast<size_t>(item.number)];
      // A consumer's items of one producer are a subsequence of what was sent.
      ASSERT_LT(last[p], item.number);
      last[p] = item.number;
    }
  }
  for (const std::vector<int>& counts : seen) {
    for (const int count : counts) ASSERT_EQ(count, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ChannelExchange,
                         testing::Values(std::tuple(1, 1, 1), std::tuple(1, 1, 4), std::tuple(4, 1, 1),
                                         std::tuple(1, 4, 2), std::tuple(3, 3, 1), std::tuple(4, 4, 7),
                                         std::tuple(2, 6, 64)));

TEST(Channel, IsFirstInFirstOut) {
  Channel<int> channel(3);
  for (int lap = 0; lap < 5; ++lap) {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(channel.Push(3 * lap + i, {}).ok());
    int more = -1;
    EXPECT_FALSE(channel.TryPush(more));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(channel.TryPop(), 3 * lap + i);
    EXPECT_EQ(channel.TryPop(), std::nullopt);
  }
}

TEST(Channel, ItemsLeftAfterCloseAreReadBeforeItsStatus) {
  Channel<int> channel(4);
  ASSERT_TRUE(channel.Push(1, {}).ok());
  ASSERT_TRUE(channel.Push(2, {}).ok());
  channel.Close(BadData("part-0:3:1: broken"));
  channel.Close(Status::Ok());
  EXPECT_EQ(channel.Pop({}).value(), 1);
  EXPECT_EQ(channel.Pop({}).value(), 2);
  EXPECT_EQ(channel.Pop({}).status().message(), "part-0:3:1: broken");
  EXPECT_EQ(channel.Push(3, {}).message(), "part-0:3:1: broken");
}

TEST(Channel, AClosedChannelTakesNothing) {
  Channel<int> channel(4);
  channel.Close(Status::Ok());
  EXPECT_EQ(channel.Push(3, {}).code(), StatusCode::kCancelled);
  EXPECT_EQ(channel.Pop({}).value(), std::nullopt);
}

TEST(Channel, CloseWakesEveryWaiter) {
  Channel<int> full(1);
  Channel<int> empty(1);
  ASSERT_TRUE(full.Push(0, {}).ok());
  std::atomic<int> woken = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] { woken += full.Push(1, {}).code() == StatusCode::kIo ? 1 : 0; });
      threads.emplace_back([&] { woken += empty.Pop({}).status().code() == StatusCode::kIo ? 1 : 0; });
    }
    full.Close(IoError("gone"));
    empty.Close(IoError("gone"));
  }
  EXPECT_EQ(woken, 6);
}

TEST(Channel, AStopRequestEndsAWait) {
  Channel<int> empty(1);
  Channel<int> full(1);
  ASSERT_TRUE(full.Push(0, {}).ok());
  std::stop_source stop;
  std::atomic<int> cancelled = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back(
          [&] { cancelled += empty.Pop(stop.get_token()).status().code() == StatusCode::kCancelled ? 1 : 0; });
      threads.emplace_back(
          [&] { cancelled += full.Push(1, stop.get_token()).code() == StatusCode::kCancelled ? 1 : 0; });
    }
    stop.request_stop();
  }
  EXPECT_EQ(cancelled, 4);
}

TEST(Channel, AShortWaitEndsWithRoomItemsOrTheEnd) {
  constexpr std::chrono::hours kLong{10};  // a wait that nobody ends fails by the test's time
  Channel<int> channel(1);
  channel.AwaitRoom(kLong);
  channel.AwaitItem(std::chrono::milliseconds(1));
  {
    const std::jthread producer([&] { ASSERT_TRUE(channel.Push(1, {}).ok()); });
    channel.AwaitItem(kLong);
    EXPECT_EQ(channel.size(), 1U);
  }
  {
    const std::jthread consumer([&] { ASSERT_TRUE(channel.Pop({}).ok()); });
    channel.AwaitRoom(kLong);
    EXPECT_EQ(channel.size(), 0U);
  }
  {
    const std::jthread closer([&] { channel.Close(Status::Ok()); });
    channel.AwaitItem(kLong);
  }
  channel.AwaitRoom(kLong);
  EXPECT_TRUE(channel.closed());
}

TEST(Channel, WhatNeedNotWaitAllocatesNothing) {
  Channel<ItemPtr> channel(4);
  ItemPtr item = std::make_unique<Item>();
  const std::stop_source stop;
  const AllocationCounter allocations;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(channel.Push(std::move(item), stop.get_token()).ok());
    item = std::move(*channel.Pop(stop.get_token()).value());
  }
  EXPECT_EQ(allocations.count(), 0);
}

TEST(Channel, AStoppedWaiterLeavesItemsToOthers) {
  for (int round = 0; round < 200; ++round) {
    Channel<int> channel(2);
    std::stop_source stop;
    std::atomic<int> got = 0;
    {
      std::jthread stopped([&] {
        Result<std::optional<int>> item = channel.Pop(stop.get_token());
        if (item.ok() && *item) got += 1;
      });
      std::jthread patient([&] {
        for (;;) {
          Result<std::optional<int>> item = channel.Pop({});
          if (!item.ok() || !*item) return;
          got += 1;
        }
      });
      std::jthread stopper([&] { stop.request_stop(); });
      ASSERT_TRUE(channel.Push(1, {}).ok());
      ASSERT_TRUE(channel.Push(2, {}).ok());
      channel.Close(Status::Ok());
    }
    ASSERT_EQ(got, 2);
  }
}

}  // namespace
}  // namespace millrace
