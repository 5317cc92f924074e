#include "session/exclusive.h"

#include <gtest/gtest.h>

#include <thread>

namespace millrace {
namespace {

TEST(ExclusiveTest, ASecondCallFails) {
  Exclusive<int> number("number", std::make_unique<int>(1));
  const auto first = number.Acquire();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(number.Acquire().status().message(), "the number is in use by another call that is not over");
  EXPECT_EQ(number.TryAcquireBriefly().status().code(), StatusCode::kAlreadyExists);
}

TEST(ExclusiveTest, ALeaseGivesTheObjectBack) {
  Exclusive<int> number("number", std::make_unique<int>(1));
  {
    const auto lease = number.TryAcquire();
    **lease = 2;
  }
  const auto lease = number.Acquire();
  EXPECT_EQ(**lease, 2);
}

// A script that reads a value while a training call starts must not make that call fail.
TEST(ExclusiveTest, ACallWaitsForABriefLease) {
  Exclusive<int> number("number", std::make_unique<int>(1));
  auto brief = std::make_unique<Result<Exclusive<int>::Lease>>(number.TryAcquireBriefly());
  std::jthread writer([&] {
    *(*brief).value() = 5;
    brief.reset();
  });
  const auto lease = number.Acquire();
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(**lease, 5);
}

}  // namespace
}  // namespace millrace
