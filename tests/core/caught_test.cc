#include "core/caught.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <system_error>
#include <thread>

#include "core/no_memory.h"

namespace millrace {
namespace {

template <class Thrown>
std::string WhatBecomesOf(const Thrown& thrown) {
  Status status;
  std::jthread([&] { status = Caught("training", [&]() -> Status { throw thrown; }); }).join();
  return status.ToString();
}

TEST(Caught, HandsOnWhatABodyGives) {
  EXPECT_TRUE(Caught("training", [] { return Status::Ok(); }).ok());
  EXPECT_EQ(Caught("training", [] { return BadData("x"); }).ToString(), "bad data: x");
  EXPECT_EQ(Caught("training", [] { return Result<int>(3); }).value(), 3);
}

TEST(Caught, AnExceptionIsAFailureThatSaysWhoseFaultItIs) {
  EXPECT_EQ(WhatBecomesOf(NoMemory(DType::kFloat32, {2, 3})), "unavailable: no memory for a tensor of float32 [2, 3]");
  EXPECT_EQ(WhatBecomesOf(std::bad_alloc()),
            "unavailable: no memory for training: smaller batches, tables or layers, fewer threads, or a larger limit "
            "(ulimit -v) may help");
  EXPECT_TRUE(
      WhatBecomesOf(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)))
          .starts_with("unavailable: training: the system has no room for another thread (ulimit -u, ulimit -v)"));
  EXPECT_TRUE(WhatBecomesOf(std::system_error(std::make_error_code(std::errc::permission_denied)))
                  .starts_with("input/output error: training: the system refused: "));
  EXPECT_EQ(WhatBecomesOf(std::logic_error("no idea")), "internal error: training threw std::logic_error: no idea");
  EXPECT_EQ(WhatBecomesOf(5), "internal error: training threw what is no std::exception");
}

TEST(Caught, GoesForAResultAsWell) {
  const Result<int> got = Caught("a checkpoint", []() -> Result<int> { throw std::logic_error("no idea"); });
  EXPECT_EQ(got.status().message(), "a checkpoint threw std::logic_error: no idea");
}

TEST(Caught, ANullPointerIsNothingMade) {
  const auto make = [](int* made) { return CaughtMaking("the table", [&] { return Result<int*>(made); }); };
  int value = 3;
  EXPECT_EQ(make(&value).value(), &value);
  EXPECT_EQ(make(nullptr).status().ToString(), "invalid configuration: making the table: it made none");
}

}  // namespace
}  // namespace millrace
