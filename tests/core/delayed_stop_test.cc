#include "core/delayed_stop.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(DelayedStopTest, StopsAfterItsDelay) {
  const auto start = std::chrono::steady_clock::now();
  std::stop_source target;
  const DelayedStop stop(target, std::chrono::milliseconds(20));
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, target.get_token(), [] { return false; });
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
}

TEST(GraceStopTest, ComesAfterTheOtherAndNotWithoutIt) {
  std::stop_source first;
  const GraceStop late(first.get_token(), std::chrono::milliseconds(0));
  EXPECT_FALSE(late.token().stop_requested());
  first.request_stop();
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, late.token(), [] { return false; });
  EXPECT_TRUE(late.token().stop_requested());
}

TEST(DelayedStopTest, DoesNothingOnceItIsGone) {
  std::stop_source target;
  { const DelayedStop stop(target, std::chrono::hours(1)); }
  EXPECT_FALSE(target.stop_requested());
}

}  // namespace
}  // namespace millrace
