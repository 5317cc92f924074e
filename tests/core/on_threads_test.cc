#include "core/on_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <string>
#include <vector>

namespace millrace {
namespace {

TEST(OnThreads, RunsEachTaskOnce) {
  for (const int threads : {0, 1, 3, 100}) {
    std::vector<std::atomic<int>> times(20);
    EXPECT_TRUE(OnThreads(threads, times.size(), "a test", [&](size_t i) {
                  ++times[i];
                  return Status::Ok();
                }).ok());
    for (const auto& count : times) EXPECT_EQ(count, 1);
  }
  EXPECT_TRUE(OnThreads(4, 0, "a test", [](size_t) { return Internal("there is none"); }).ok());
}

TEST(OnThreads, StopsAtAFailureAndReturnsIt) {
  size_t ran = 0;
  const Status status = OnThreads(1, 10, "a test", [&](size_t i) {
    ++ran;
    return i == 3 ? BadData("task 3") : Status::Ok();
  });
  EXPECT_EQ(status.ToString(), "bad data: task 3");
  EXPECT_EQ(ran, 4);
}

TEST(OnThreads, WhatATaskThrowsIsItsFailure) {
  const Status status = OnThreads(2, 2, "a test", [](size_t) -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace millrace
