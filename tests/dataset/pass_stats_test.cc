#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "dataset/dataset.h"

namespace millrace {
namespace {

PassStats JsonPart(int64_t lines, bool is_partial) {
  PassStats part;
  part.names.lines = lines;
  part.names.is_partial = is_partial;
  part.names.some = {"age"};
  part.names.absent = {"agee"};
  part.names.whole_floats = {{"country", "5.0"}};
  return part;
}

TEST(ValueWarningsTest, AreOfAllLines) {
  PassStats all = JsonPart(32, false);
  AddPassStats(JsonPart(8, false), &all);
  EXPECT_THAT(ValueWarnings(all),
              testing::ElementsAre(testing::Pair("agee", testing::HasSubstr("none of 40 lines has the key \"agee\"")),
                                   testing::Pair("country", testing::HasSubstr("its words are \"5.0\", not \"5\""))));
}

// A run that was stopped used to say so of the files that it had read.
TEST(ValueWarningsTest, SayNothingWhereLinesWereLeftUnread) {
  for (const bool first : {true, false}) {
    // A part of which no line was read knows no names.
    for (const PassStats& partial : {JsonPart(5, true), JsonPart(0, true)}) {
      PassStats all;
      AddPassStats(first ? partial : JsonPart(32, false), &all);
      AddPassStats(first ? JsonPart(32, false) : partial, &all);
      EXPECT_TRUE(ValueWarnings(all).empty());
    }
  }
}

}  // namespace
}  // namespace millrace
