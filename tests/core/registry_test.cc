#include "core/registry.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Registry, GivesWhatWasAddedByItsName) {
  Registry<int> registry("number");
  EXPECT_TRUE(registry.Add("one", "the first", 1).ok());
  EXPECT_TRUE(registry.Add("two", "the second", 2).ok());
  EXPECT_EQ(*registry.Find("two"), 2);
  EXPECT_EQ(registry.Find("three"), nullptr);
  EXPECT_EQ(**registry.Get("one"), 1);
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(registry.entries()[1].doc, "the second");
}

TEST(Registry, ANameIsTakenOnce) {
  Registry<int> registry("number");
  ASSERT_TRUE(registry.Add("one", "the first", 1).ok());
  EXPECT_EQ(registry.Add("one", "another", 2).ToString(), "already exists: a number \"one\" is registered already");
  EXPECT_EQ(*registry.Find("one"), 1);
}

TEST(Registry, AnUnknownNameIsToldTheNearestOneAndAllThatThereAre) {
  Registry<int> registry("number");
  ASSERT_TRUE(registry.Add("seven", "", 7).ok());
  ASSERT_TRUE(registry.Add("twelve", "", 12).ok());
  EXPECT_EQ(registry.Get("sevn").status().ToString(),
            "invalid configuration: no number \"sevn\"; did you mean \"seven\"?; there are: seven, twelve");
}

}  // namespace
}  // namespace millrace
