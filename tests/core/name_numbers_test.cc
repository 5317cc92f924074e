#include "core/name_numbers.h"

#include <gtest/gtest.h>

#include <string>

namespace millrace {
namespace {

TEST(NameNumbersTest, NumbersNamesAsTheyCome) {
  NameNumbers numbers;
  EXPECT_EQ(numbers.Find("a"), 0U);
  EXPECT_EQ(numbers.Add("a"), 0U);
  EXPECT_EQ(numbers.Add("b"), 1U);
  EXPECT_EQ(numbers.Add(""), 2U);
  EXPECT_EQ(numbers.Add("a"), 0U);
  EXPECT_EQ(numbers.Find("b"), 1U);
  EXPECT_EQ(numbers.Find(""), 2U);
  EXPECT_EQ(numbers.Find("c"), 3U);
  EXPECT_EQ(numbers.size(), 3U);
  EXPECT_EQ(numbers.name(1), "b");
}

TEST(NameNumbersTest, KeepsManyNamesAndLongOnes) {
  constexpr size_t kNames = 100000;
  NameNumbers numbers;
  const std::string_view long_name = numbers.name(numbers.Add(std::string(1 << 20, 'x')));
  for (size_t i = 1; i < kNames; ++i) EXPECT_EQ(numbers.Add("name_" + std::to_string(i)), i);
  for (size_t i = 1; i < kNames; ++i) {
    ASSERT_EQ(numbers.Find("name_" + std::to_string(i)), i);
    ASSERT_EQ(numbers.name(i), "name_" + std::to_string(i));
  }
  EXPECT_EQ(long_name, std::string(1 << 20, 'x'));
  EXPECT_EQ(numbers.Find("name_0"), kNames);
  EXPECT_EQ(numbers.Add("name_77"), 77U);
}

}  // namespace
}  // namespace millrace
