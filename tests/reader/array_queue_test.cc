// The queue between Python's arrays and readers: shapes, capacity, order, ends; TSan runs the threads.
#include "reader/array_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "reader/py_array_reader.h"

namespace millrace {
namespace {

using std::stop_token;

TensorSpec Int64Spec(std::initializer_list<int64_t> sizes) { return {DType::kInt64, Dims(sizes), 0}; }

std::shared_ptr<PyArrayFeedQueue> MakeQueue(size_t capacity) {
  PyArrayFeedQueueHolder holder;
  EXPECT_TRUE(holder.InitOnce(capacity, {Int64Spec({-1})}).ok());
  return holder.feeder();
}

/// An array of these values, which counts itself out of `alive` when nobody holds it.
HeldArrays Values(std::vector<int64_t> values, std::atomic<int>* alive = nullptr) {
  if (alive != nullptr) ++*alive;
  auto owner = std::shared_ptr<std::vector<int64_t>>(new std::vector<int64_t>(std::move(values)),
                                                     [alive](std::vector<int64_t>* held) {
                                                       delete held;
                                                       if (alive != nullptr) --*alive;
                                                     });
  HeldArray array;
  array.dtype = DType::kInt64;
  array.dims = {static_cast<int64_t>(owner->size())};
  array.data = owner->data();
  array.owner = std::move(owner);
  HeldArrays arrays;
  arrays.push_back(std::move(array));
  return arrays;
}

int64_t First(const HeldArrays& arrays) { return static_cast<const int64_t*>(arrays[0].data)[0]; }

TEST(ArrayQueueTest, AHolderMakesItsQueueOnce) {
  PyArrayFeedQueueHolder holder;
  EXPECT_EQ(holder.feeder(), nullptr);
  EXPECT_EQ(holder.InitOnce(0, {Int64Spec({1})}).message(), "a queue's capacity must be at least 1; 0");
  EXPECT_EQ(holder.InitOnce(2, {}).message(), "a queue needs the shape of at least one array");
  EXPECT_EQ(holder.InitOnce(1000001, {Int64Spec({1})}).message(),
            "a queue's capacity must be at most 1000000; 1000001");
  EXPECT_EQ(holder.InitOnce(2, {Int64Spec({1}), Int64Spec({-1, -2})}).message(),
            "array 1 of the queue: a size is -1 (any) or not negative; -2");
  EXPECT_EQ(holder.InitOnce(2, {Int64Spec({1, 1, 1, 1, 1, 1, 1, 1, 1})}).message(),
            "array 0 of the queue: a tensor has at most 8 axes");
  ASSERT_TRUE(holder.InitOnce(2, {Int64Spec({1})}).ok());
  const Status again = holder.InitOnce(2, {Int64Spec({1})});
  EXPECT_EQ(again.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(again.message(), "init_once was called before: the holder has its queue");
  static_assert(!std::is_copy_constructible_v<PyArrayFeedQueue> && !std::is_move_constructible_v<PyArrayFeedQueue>);
}

TEST(ArrayQueueTest, ItSaysHowFullItIs) {
  const auto queue = MakeQueue(2);
  EXPECT_TRUE(queue->is_empty());
  EXPECT_EQ(queue->capacity(), 2U);
  ASSERT_TRUE(queue->Push(Values({1}), stop_token()).ok());
  EXPECT_FALSE(queue->is_empty() || queue->is_full());
  ASSERT_TRUE(queue->Push(Values({2}), stop_token()).ok());
  EXPECT_TRUE(queue->is_full());
  EXPECT_EQ(queue->size(), 2U);
  HeldArrays third = Values({3});
  EXPECT_FALSE(queue->TryPush(third));
  EXPECT_EQ(First(third), 3);
}

TEST(ArrayQueueTest, WhatDoesNotFitIsRefused) {
  PyArrayFeedQueueHolder holder;
  ASSERT_TRUE(holder.InitOnce(2, {Int64Spec({-1, 2}), Int64Spec({3})}).ok());
  const auto queue = holder.feeder();
  EXPECT_EQ(queue->Push(Values({1}), stop_token()).message(), "the queue takes 2 arrays at a time, not 1");
  HeldArrays two = Values({1, 2, 3});
  two.push_back(two[0]);
  EXPECT_EQ(queue->Push(two, stop_token()).message(), "array 0 is int64 [3], but the queue takes int64 [-1, 2]");
  two[0].dims = {1, 2};
  two[1].dtype = DType::kFloat32;
  EXPECT_EQ(queue->Push(two, stop_token()).message(), "array 1 is float32 [3], but the queue takes int64 [3]");
  two[1].dtype = DType::kInt64;
  EXPECT_TRUE(queue->Push(two, stop_token()).ok());
}

TEST(ArrayQueueTest, MemoryIsHeldUntilItWasTaken) {
  std::atomic<int> alive{0};
  const auto queue = MakeQueue(4);
  for (const int64_t value : {7, 8}) ASSERT_TRUE(queue->Push(Values({value}, &alive), stop_token()).ok());
  EXPECT_EQ(alive, 2);
  {
    const auto taken = queue->Pop(stop_token());
    ASSERT_TRUE(taken.ok() && taken->has_value());
    EXPECT_EQ(First(**taken), 7);
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 1);
  queue->Close(Status::Ok());
  EXPECT_FALSE(queue->Push(Values({9}, &alive), stop_token()).ok());
  EXPECT_EQ(alive, 1);
}

TEST(ArrayQueueTest, AReaderEndsWithTheQueueAndCannotStartOver) {
  const auto queue = MakeQueue(4);
  PyArrayReader reader(queue);
  ASSERT_TRUE(queue->Push(Values({1, 2}), stop_token()).ok());
  ASSERT_TRUE(queue->Push(Values({3}), stop_token()).ok());
  queue->Close(Status::Ok());
  std::vector<LoDTensor> out;
  ASSERT_TRUE(*reader.ReadNext(&out, stop_token()));
  EXPECT_EQ(out[0].values.dims(), Dims{2});
  EXPECT_EQ(out[0].values.data<int64_t>()[1], 2);
  ASSERT_TRUE(*reader.ReadNext(&out, stop_token()));
  EXPECT_EQ(out[0].values.data<int64_t>()[0], 3);
  EXPECT_FALSE(*reader.ReadNext(&out, stop_token()));
  EXPECT_THAT(reader.ReInit().message(), ::testing::StartsWith("PyArrayReader does not support ReInit(): "));
}

TEST(ArrayQueueTest, AMarkEndsAPassAndLeavesTheQueueOpen) {
  const auto queue = MakeQueue(8);
  PyArrayReader reader(queue);
  for (const int64_t value : {1, 2}) ASSERT_TRUE(queue->Push(Values({value}), stop_token()).ok());
  ASSERT_TRUE(queue->EndPass(stop_token()).ok());
  for (const int64_t value : {3, 4}) ASSERT_TRUE(queue->Push(Values({value}), stop_token()).ok());
  std::vector<LoDTensor> out;
  ASSERT_TRUE(*reader.ReadNext(&out, stop_token()));
  ASSERT_TRUE(*reader.ReadNext(&out, stop_token()));
  EXPECT_FALSE(*reader.ReadNext(&out, stop_token()));
  ASSERT_TRUE(reader.ReInit().ok());
  ASSERT_TRUE(*reader.ReadNext(&out, stop_token()));
  EXPECT_EQ(out[0].values.data<int64_t>()[0], 3);
  // What is left of a pass is dropped, once its end is there.
  EXPECT_THAT(reader.ReInit().message(), ::testing::HasSubstr("this pass has no end yet; call queue.end_pass() first"));
  ASSERT_TRUE(queue->Push(Values({5}), stop_token()).ok());
  ASSERT_TRUE(queue->EndPass(stop_token()).ok());
  ASSERT_TRUE(queue->Push(Values({6}), stop_token()).ok());
  ASSERT_TRUE(reader.ReInit().ok());
  ASSERT_TRUE(*reader.ReadNext(&out, stop_token()));
  EXPECT_EQ(out[0].values.data<int64_t>()[0], 6);
}

TEST(ArrayQueueTest, AReaderGoesOnWhenTheQueueIsOpenedAgain) {
  const auto queue = MakeQueue(4);
  PyArrayReader reader(queue);
  std::vector<LoDTensor> out;
  for (const int64_t value : {7, 8}) {
    ASSERT_TRUE(queue->Push(Values({value}), stop_token()).ok());
    queue->Close(Status::Ok());
    ASSERT_TRUE(*reader.ReadNext(&out, stop_token()));
    EXPECT_EQ(out[0].values.data<int64_t>()[0], value);
    EXPECT_FALSE(*reader.ReadNext(&out, stop_token()));
    EXPECT_FALSE(reader.ReInit().ok());
    queue->Reopen();
    queue->Reopen();  // open as it is
    EXPECT_FALSE(queue->is_closed());
    ASSERT_TRUE(reader.ReInit().ok());
  }
  EXPECT_EQ(queue->openings(), 2U);
}

TEST(ArrayQueueTest, FailuresReachBothSides) {
  const auto queue = MakeQueue(4);
  ASSERT_TRUE(queue->Push(Values({1}), stop_token()).ok());
  queue->Close(BadData("the producer broke"));
  EXPECT_EQ(queue->Push(Values({2}), stop_token()).message(), "the producer broke");
  PyArrayReader reader(queue);
  std::vector<LoDTensor> out;
  ASSERT_TRUE(*reader.ReadNext(&out, stop_token()));
  EXPECT_EQ(reader.ReadNext(&out, stop_token()).status().message(), "the producer broke");

  const auto other = MakeQueue(1);
  ASSERT_TRUE(other->Push(Values({1}), stop_token()).ok());
  std::jthread producer(
      [&] { EXPECT_EQ(other->Push(Values({2}), stop_token()).message(), "the reader of the queue is gone"); });
  { const PyArrayReader gone(other); }
}

TEST(ArrayQueueTest, AStopEndsBothWaits) {
  const auto queue = MakeQueue(1);
  std::stop_source stop;
  std::jthread consumer([&] { EXPECT_EQ(queue->Pop(stop.get_token()).status().code(), StatusCode::kCancelled); });
  stop.request_stop();
  consumer.join();
  ASSERT_TRUE(queue->Push(Values({1}), stop_token()).ok());
  EXPECT_EQ(queue->Push(Values({2}), stop.get_token()).code(), StatusCode::kCancelled);
}

TEST(ArrayQueueTest, EightProducersAndEightConsumersLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int64_t kEach = 300;
  constexpr size_t kCapacity = 3;
  std::atomic<int> alive{0};
  std::atomic<size_t> most{0};
  const auto queue = MakeQueue(kCapacity);
  std::vector<std::vector<int64_t>> taken(kThreads);
  {
    std::vector<std::jthread> consumers;
    for (int i = 0; i < kThreads; ++i) {
      consumers.emplace_back([&, i] {
        while (true) {
          const size_t size = queue->size();
          size_t seen = most.load();
          while (size > seen && !most.compare_exchange_weak(seen, size)) {
          }
          const auto arrays = queue->Pop(stop_token());
          ASSERT_TRUE(arrays.ok());
          if (!arrays->has_value()) return;
          taken[static_cast<size_t>(i)].push_back(First(**arrays));
        }
      });
    }
    std::vector<std::jthread> producers;
    for (int i = 0; i < kThreads; ++i) {
      producers.emplace_back([&, i] {
        for (int64_t k = 0; k < kEach; ++k) {
          ASSERT_TRUE(queue->Push(Values({i * kEach + k}, &alive), stop_token()).ok());
        }
      });
    }
    producers.clear();
    queue->Close(Status::Ok());
  }
  std::map<int64_t, int> counts;
  for (const std::vector<int64_t>& one : taken) {
    std::map<int64_t, int64_t> last;  // of each producer, as this consumer saw it
    for (const int64_t value : one) {
      ++counts[value];
      const auto before = last.find(value / kEach);
      if (before != last.end()) {
        EXPECT_GT(value, before->second) << "a producer's arrays came out of order";
      }
      last[value / kEach] = value;
    }
  }
  EXPECT_EQ(counts.size(), static_cast<size_t>(kThreads * kEach));
  for (const auto& [value, count] : counts) EXPECT_EQ(count, 1) << value;
  EXPECT_LE(most, kCapacity);
  EXPECT_EQ(alive, 0);
}

TEST(ArrayQueueTest, WithoutConsumersExactlyItsCapacityGoesIn) {
  constexpr int kThreads = 8;
  for (const size_t capacity : {1U, 3U, 7U}) {
    std::atomic<int> alive{0};
    const auto queue = MakeQueue(capacity);
    std::atomic<size_t> pushed{0};
    std::stop_source stop;
    std::vector<std::jthread> producers;
    for (int i = 0; i < kThreads; ++i) {
      producers.emplace_back([&] {
        while (queue->Push(Values({1}, &alive), stop.get_token()).ok()) ++pushed;
      });
    }
    while (!queue->is_full() || pushed < capacity) std::this_thread::yield();
    stop.request_stop();
    producers.clear();
    EXPECT_EQ(pushed, capacity);
    EXPECT_EQ(queue->size(), capacity);
    EXPECT_EQ(static_cast<size_t>(alive), capacity) << "what was not taken in is let go of";
  }
}

/// What one round of the stress below did.
struct StressRound {
  std::atomic<int> alive{0};
  std::atomic<int> most_alive{0};
  std::atomic<int64_t> popped{0};
  std::vector<std::vector<int64_t>> pushed;  ///< of each producer, what was taken in
  std::vector<std::vector<int64_t>> taken;   ///< of each consumer
};

constexpr int kStressThreads = 8;
constexpr int64_t kStressBase = 1000000;

void Produce(PyArrayFeedQueue& queue, StressRound& round, int number) {
  const auto note = [&round] {
    const int now = round.alive.load();
    int seen = round.most_alive.load();
    while (now > seen && !round.most_alive.compare_exchange_weak(seen, now)) {
    }
  };
  for (int64_t k = 0;; ++k) {
    if (k % 16 == 5) {
      // One that does not fit is refused and leaves no trace.
      HeldArrays wrong = Values({1}, &round.alive);
      wrong[0].dtype = DType::kFloat32;
      EXPECT_EQ(queue.Push(std::move(wrong), stop_token()).code(), StatusCode::kInvalidConfig);
    }
    HeldArrays arrays = Values({number * kStressBase + k}, &round.alive);
    note();
    const bool tried = k % 3 == 0 && queue.TryPush(arrays);
    if (!tried) {
      if (const Status status = queue.Push(std::move(arrays), stop_token()); !status.ok()) {
        EXPECT_EQ(status.message(), "broken in the middle");
        return;
      }
    }
    round.pushed[static_cast<size_t>(number)].push_back(number * kStressBase + k);
  }
}

void Consume(PyArrayFeedQueue& queue, StressRound& round, int number, int64_t close_after) {
  while (true) {
    const auto arrays = queue.Pop(stop_token());
    if (!arrays.ok()) {
      EXPECT_EQ(arrays.status().message(), "broken in the middle");
      return;
    }
    ASSERT_TRUE(arrays->has_value());
    round.taken[static_cast<size_t>(number)].push_back(First(**arrays));
    if (++round.popped == close_after) queue.Close(BadData("broken in the middle"));
  }
}

TEST(ArrayQueueTest, AFailureInTheMiddleLosesNothingThatWasTakenIn) {
  for (int number = 0; number < 24; ++number) {
    const size_t capacity = 1 + static_cast<size_t>(number % 5);
    const auto queue = MakeQueue(capacity);
    StressRound round;
    round.pushed.resize(kStressThreads);
    round.taken.resize(kStressThreads);
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kStressThreads; ++i) {
        threads.emplace_back([&, i] { Produce(*queue, round, i); });
        threads.emplace_back([&, i] { Consume(*queue, round, i, 17 * (number + 1)); });
      }
    }
    // In the queue, in the hands of a producer, in those of a consumer: no array is anywhere else.
    EXPECT_LE(round.most_alive, static_cast<int>(capacity) + 2 * kStressThreads);
    EXPECT_EQ(round.alive, 0);
    std::vector<int64_t> pushed;
    std::vector<int64_t> taken;
    for (const auto& one : round.pushed) pushed.insert(pushed.end(), one.begin(), one.end());
    for (const auto& one : round.taken) {
      taken.insert(taken.end(), one.begin(), one.end());
      std::map<int64_t, int64_t> last;
      for (const int64_t value : one) {
        const auto [before, first] = last.emplace(value / kStressBase, value);
        if (first) continue;
        EXPECT_GT(value, before->second) << "a producer's arrays came out of order";
        before->second = value;
      }
    }
    std::sort(pushed.begin(), pushed.end());
    std::sort(taken.begin(), taken.end());
    EXPECT_EQ(pushed, taken);
  }
}

TEST(ArrayQueueTest, OneConsumerSeesEveryProducerInOrder) {
  const auto queue = MakeQueue(2);
  StressRound round;
  round.pushed.resize(kStressThreads);
  round.taken.resize(1);
  {
    std::vector<std::jthread> producers;
    for (int i = 0; i < kStressThreads; ++i) producers.emplace_back([&, i] { Produce(*queue, round, i); });
    Consume(*queue, round, 0, 500);
  }
  std::vector<std::vector<int64_t>> seen(kStressThreads);
  for (const int64_t value : round.taken[0]) seen[static_cast<size_t>(value / kStressBase)].push_back(value);
  EXPECT_EQ(seen, round.pushed) << "first in, first out, for each producer";
}

TEST(ArrayQueueTest, AQueueThatIsWaitedOnOutlivesItsOwner) {
  for (int number = 0; number < 50; ++number) {
    auto holder = std::make_unique<PyArrayFeedQueueHolder>();
    ASSERT_TRUE(holder->InitOnce(1, {Int64Spec({-1})}).ok());
    const std::weak_ptr<PyArrayFeedQueue> seen = holder->feeder();
    std::atomic<int> alive{0};
    const bool waits_for_room = number % 2 == 0;
    if (waits_for_room) {
      ASSERT_TRUE(holder->feeder()->Push(Values({1}, &alive), stop_token()).ok());
    }
    std::vector<std::jthread> waiters;
    for (int i = 0; i < 4; ++i) {
      waiters.emplace_back([&, queue = holder->feeder()]() mutable {
        const Status status =
            waits_for_room ? queue->Push(Values({2}, &alive), stop_token()) : queue->Pop(stop_token()).status();
        EXPECT_EQ(status.message(), "gone");
        queue.reset();
      });
    }
    holder.reset();
    if (const auto queue = seen.lock(); queue != nullptr) queue->Close(Cancelled("gone"));
    waiters.clear();
    EXPECT_TRUE(seen.expired());
    EXPECT_EQ(alive, 0);
  }
}

TEST(ArrayQueueTest, AWaitThatLooksEndsWhenToldAndLeavesTheRestAlone) {
  const std::shared_ptr<PyArrayFeedQueue> queue = MakeQueue(1);
  int looks = 0;
  const auto second = [&looks] { return ++looks == 2; };
  EXPECT_EQ(queue->PopUnless(second).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(looks, 2);
  ASSERT_TRUE(queue->PushUnless(second, Values({7})).ok());
  looks = 0;
  std::atomic<int> alive = 0;
  EXPECT_EQ(queue->PushUnless(second, Values({8}, &alive)).code(), StatusCode::kCancelled);
  EXPECT_EQ(alive, 0);
  const Result<std::optional<HeldArrays>> popped = queue->PopUnless(second);
  ASSERT_TRUE(popped.ok() && popped.value().has_value());
  EXPECT_EQ(First(**popped), 7);
  EXPECT_EQ(queue->size(), 0U);
  EXPECT_EQ(looks, 2);
}

TEST(ArrayQueueTest, AWaitThatLooksEndsByAClose) {
  const std::shared_ptr<PyArrayFeedQueue> queue = MakeQueue(1);
  const auto never = [] { return false; };
  {
    const std::jthread closer([&] { queue->Close(BadData("broken")); });
    EXPECT_EQ(queue->PopUnless(never).status().message(), "broken");
  }
  EXPECT_EQ(queue->PushUnless(never, Values({1})).message(), "broken");
}

}  // namespace
}  // namespace millrace
