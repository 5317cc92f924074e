#include "core/status.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace millrace {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return BadData("odd: " + std::to_string(n));
  return n / 2;
}

Status Quarter(int n, int* out) {
  MR_ASSIGN(const int half, Half(n));
  MR_ASSIGN(*out, Half(half));
  return Status::Ok();
}

TEST(Status, CarriesCodeMessageAndContext) {
  Status s = std::move(BadData("count 0")).Context("slot \"a\"").Context("part-0:7:3");
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(s.ToString(), "bad data: part-0:7:3: slot \"a\": count 0");
  Status copy = s;
  EXPECT_EQ(copy.message(), s.message());
  EXPECT_EQ(Status::Ok().ToString(), "ok");
}

TEST(Status, MacrosReturnTheFirstFailure) {
  int out = 0;
  EXPECT_TRUE(Quarter(12, &out).ok());
  EXPECT_EQ(out, 3);
  EXPECT_EQ(Quarter(6, &out).message(), "odd: 3");
}

TEST(Status, TooManyOpenFilesSaysWhichLimit) {
  EXPECT_EQ(IoErrorFromErrno("cannot make a pipe", EMFILE).message(),
            "cannot make a pipe: Too many open files; raise the limit (ulimit -n), or read with fewer threads");
  EXPECT_EQ(IoErrorFromErrno("a: write", ENOSPC).message(), "a: write: No space left on device");
}

}  // namespace
}  // namespace millrace
