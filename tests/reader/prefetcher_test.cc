#include "reader/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>
#include <stdexcept>

namespace millrace {
namespace {

/// Pushes the numbers from 0 to `count` - 1 and counts how many are in.
class NumberSource {
 public:
  NumberSource(int count, size_t capacity)
      : prefetcher_(1, capacity, [this, count](int, const std::stop_token& stop) { return PushAll(count, stop); }) {}

  /// The next number; -1 at the end.
  int64_t Next(size_t together) {
    const Result<bool> more = prefetcher_.Next(&item_, together, {});
    return more.ok() && *more ? item_[0].values.data<int64_t>()[0] : -1;
  }
  int pushed() const { return pushed_; }
  /// Waits until so many were pushed.
  void AwaitPushed(int count) const {
    for (int now = pushed_; now < count; now = pushed_) pushed_.wait(now);
  }

 private:
  Status PushAll(int count, const std::stop_token& stop) {
    Prefetcher::Item item;
    for (int i = 0; i < count; ++i) {
      item.resize(1);
      item[0].values.Resize<int64_t>({1})[0] = i;
      MR_TRY(prefetcher_.Push(&item, stop));
      ++pushed_;
      pushed_.notify_all();
    }
    return Status::Ok();
  }

  std::atomic<int> pushed_{0};
  Prefetcher::Item item_;
  Prefetcher prefetcher_;  // last: its thread ends before the rest
};

TEST(Prefetcher, HandsOnEveryItemOnceInOrderHoweverManyAreTakenTogether) {
  for (const size_t capacity : {1, 2, 3, 7, 100}) {
    for (const size_t together : {0, 1, 2, 64, 1000}) {
      NumberSource source(250, capacity);
      for (int i = 0; i < 250; ++i) ASSERT_EQ(source.Next(together), i) << capacity << ' ' << together;
      EXPECT_EQ(source.Next(together), -1);
      EXPECT_EQ(source.Next(together), -1);
    }
  }
}

TEST(Prefetcher, NeverHoldsMoreThanItsCapacity) {
  for (const int capacity : {1, 2, 5, 16}) {
    NumberSource source(1000, static_cast<size_t>(capacity));
    for (int taken = 1; taken <= 1000; ++taken) {
      ASSERT_EQ(source.Next(4), taken - 1);
      ASSERT_LE(source.pushed(), taken + capacity);
      if (taken % 100 == 1 && taken + capacity <= 1000) {
        // Whoever does not come back for a while finds the buffer full; what it took at once counts as in it.
        source.AwaitPushed(taken + (capacity + 1) / 2 - 1);
      }
    }
  }
}

TEST(Prefetcher, GivesWhatThereIsToWhoTakesOneAtATime) {
  Prefetcher* self = nullptr;
  Prefetcher prefetcher(1, 100, [&self](int, const std::stop_token& stop) -> Status {
    Prefetcher::Item item(1);
    item[0].values.Resize<int64_t>({1})[0] = 7;
    MR_TRY(self->Push(&item, stop));
    // The second one never comes.
    std::promise<void> stopped;
    const std::stop_callback on_stop(stop, [&stopped] { stopped.set_value(); });
    stopped.get_future().wait();
    return Cancelled("stopped");
  });
  self = &prefetcher;
  Prefetcher::Item item;
  EXPECT_TRUE(*prefetcher.Next(&item, 1, {}));
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return prefetcher.Next(&item, 1, stop.get_token()); });
  stop.request_stop();
  EXPECT_EQ(waiting.get().status().code(), StatusCode::kCancelled);
}

TEST(Prefetcher, WhatAThreadThrowsIsTheReadersFailure) {
  for (const bool is_memory : {true, false}) {
    Prefetcher prefetcher(3, 10, [is_memory](int, const std::stop_token&) -> Status {
      if (is_memory) throw std::bad_alloc();
      throw std::logic_error("no idea");
    });
    Prefetcher::Item item;
    const Status status = prefetcher.Next(&item, 1, {}).status();
    EXPECT_EQ(status.code(), is_memory ? StatusCode::kUnavailable : StatusCode::kInternal);
    EXPECT_TRUE(status.message().starts_with(is_memory ? "no memory for reading ahead: "
                                                       : "reading ahead threw std::logic_error: no idea"));
  }
}

TEST(Prefetcher, AFailureComesBehindTheItemsBeforeIt) {
  Prefetcher* self = nullptr;
  Prefetcher prefetcher(1, 10, [&self](int, const std::stop_token& stop) -> Status {
    Prefetcher::Item item(1);
    for (int i = 0; i < 3; ++i) {
      item.resize(1);
      MR_TRY(self->Push(&item, stop));
    }
    return BadData("broken");
  });
  self = &prefetcher;
  for (int pass = 0; pass < 2; ++pass) {
    Prefetcher::Item item;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(*prefetcher.Next(&item, 64, {}));
    EXPECT_EQ(prefetcher.Next(&item, 64, {}).status().message(), "broken");
    prefetcher.Stop();
  }
}

}  // namespace
}  // namespace millrace
