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
  part.names.whole_floats = {{"country", {.text = "5.0", .place = "log:3:7", .line = 3}}};
  return part;
}

TEST(ValueWarningsTest, AreOfAllLines) {
  PassStats all = JsonPart(32, false);
  AddPassStats(JsonPart(8, false), &all);
  EXPECT_THAT(ValueWarnings(all, Reads::kTraining),
              testing::ElementsAre(testing::Pair("agee", testing::HasSubstr("none of 40 lines has the key \"agee\"")),
                                   testing::Pair("country", testing::HasSubstr("its words are \"5.0\" (log:3:7), not "
                                                                               "\"5\""))));
}

TEST(ValueWarningsTest, NameTheFirstValueOfEachWay) {
  PassStats all = JsonPart(8, false);
  PassStats before = JsonPart(8, false);
  before.names.whole_floats = {{"country", {.text = "6.0", .place = "log:2:7", .line = 2}}};
  before.names.whole = {{"country", {.text = "7", .place = "log:9:7", .line = 9}}};
  AddPassStats(before, &all);
  EXPECT_THAT(ValueWarnings(all, Reads::kTraining)["country"],
              testing::HasSubstr("its words are \"6.0\" (log:2:7) there, and \"7\" (log:9:7) in others"));
  all.names.others = {"country"};
  EXPECT_FALSE(ValueWarnings(all, Reads::kTraining).contains("country"));
}

TEST(ValueWarningsTest, CompareNumbersWithThoseOfTheTraining) {
  const auto warned = [](const char* trained, const char* found, Reads reads) {
    PassStats read;
    read.names.lines = 1;
    const bool is_float = std::string(found) == "5.0";
    (is_float ? read.names.whole_floats : read.names.whole)["user"] = {.text = found, .place = "new:2:1"};
    read.names.trained["user"] = {.text = trained, .place = "old:3:4"};
    const std::map<std::string, std::string> all = ValueWarnings(read, reads);
    return all.empty() ? "" : all.begin()->second;
  };
  EXPECT_THAT(warned("4", "5.0", Reads::kModel),
              testing::StartsWith("column \"user\" holds whole numbers as floats: its words are \"5.0\" (new:2:1), and "
                                  "\"4\" (old:3:4) where the training began"));
  EXPECT_THAT(warned("4.0", "5", Reads::kModel),
              testing::StartsWith("column \"user\" holds whole numbers: its words are \"5\" (new:2:1), and \"4.0\" "
                                  "(old:3:4) where the training began"));
  EXPECT_EQ(warned("4.0", "5.0", Reads::kModel), "");
  EXPECT_EQ(warned("4", "5", Reads::kModel), "");
  EXPECT_EQ(warned("", "5.0", Reads::kModel), "") << "a column of words";
  EXPECT_THAT(warned("4.0", "5.0", Reads::kTraining), testing::HasSubstr("its words are \"5.0\" (new:2:1), not \"5\""));
}

TEST(ValueWarningsTest, TellTruthValuesThatAreOneAndZeroElsewhere) {
  const auto warned = [](const char* trained, bool has_truths, bool has_numbers, Reads reads) {
    PassStats read;
    read.names.lines = 2;
    if (has_truths) read.names.truths["vip"] = {.text = "True", .place = "new:2:1"};
    if (has_numbers) read.names.whole["vip"] = {.text = "1", .place = "new:3:1"};
    if (trained != nullptr) read.names.trained["vip"] = {.text = trained, .place = "old:3:4"};
    const std::map<std::string, std::string> all = ValueWarnings(read, reads);
    return all.empty() ? "" : all.begin()->second;
  };
  const std::string advice = " where the training began, so that one value is two words: write them alike, or retrain";
  EXPECT_EQ(warned("False", false, true, Reads::kModel),
            "column \"vip\" holds truth values: its words are \"1\" (new:3:1), and \"False\" (old:3:4)" + advice);
  EXPECT_EQ(warned("0", true, false, Reads::kModel),
            "column \"vip\" holds truth values: its words are \"True\" (new:2:1), and \"0\" (old:3:4)" + advice);
  EXPECT_EQ(warned(nullptr, true, true, Reads::kTraining),
            "column \"vip\" holds truth values in some lines: its words are \"True\" (new:2:1) there, and \"1\" "
            "(new:3:1) in others, so that one value may be two words: write them alike");
  EXPECT_EQ(warned("False", true, false, Reads::kModel), "");
  EXPECT_EQ(warned("false", true, false, Reads::kModel),
            "column \"vip\" holds truth values: its words are \"True\" (new:2:1), and \"false\" (old:3:4)" + advice);
  EXPECT_EQ(warned(nullptr, true, false, Reads::kTraining), "");
  EXPECT_EQ(warned("", true, true, Reads::kModel), "") << "a column of words";
}

// A run that was stopped used to say so of the files that it had read.
TEST(ValueWarningsTest, SayNothingWhereLinesWereLeftUnread) {
  for (const bool first : {true, false}) {
    // A part of which no line was read knows no names.
    for (const PassStats& partial : {JsonPart(5, true), JsonPart(0, true)}) {
      PassStats all;
      AddPassStats(first ? partial : JsonPart(32, false), &all);
      AddPassStats(first ? JsonPart(32, false) : partial, &all);
      EXPECT_TRUE(ValueWarnings(all, Reads::kTraining).empty());
    }
  }
}

/// The warnings of a slot whose values were `now`, and `before` in the evaluation before.
std::map<std::string, std::string> OfShares(const SlotShare& now, const SlotShare& before) {
  PassStats read;
  read.names.shares = {{"city", now}};
  if (before.rows > 0) read.names.trained_shares = {{"city", before}};
  return ValueWarnings(read, Reads::kModel);
}

TEST(ValueWarningsTest, TellOfValuesThatWereNeverTrained) {
  EXPECT_THAT(
      OfShares({100, 0, 100, 80}, {100, 0, 100, 2}),
      testing::ElementsAre(testing::Pair(
          "city unknown", testing::StartsWith("slot \"city\": 80 % of its values were never trained, and 2 % in "
                                              "the evaluation before: are they written as in training"))));
  EXPECT_THAT(OfShares({1000, 0, 1000, 330}, {1000, 0, 1000, 300}), testing::IsEmpty()) << "not clearly more";
  EXPECT_THAT(OfShares({1000, 0, 1000, 0}, {1000, 0, 1000, 300}), testing::IsEmpty()) << "fewer";
  EXPECT_THAT(OfShares({19, 0, 19, 19}, {1000, 0, 1000, 0}), testing::IsEmpty()) << "too few to tell";
}

TEST(ValueWarningsTest, TellOfHalfOfTheValuesWhereNoEvaluationSaysWhatIsUsual) {
  EXPECT_THAT(
      OfShares({40, 0, 40, 40}, {}),
      testing::ElementsAre(testing::Pair("city unknown", testing::StartsWith("slot \"city\": 100 % of its values "
                                                                             "were never trained: are they"))));
  EXPECT_THAT(OfShares({40, 40, 40, 19}, {}), testing::IsEmpty());
}

// Every job with a small vocabulary used to be warned, although its model was trained on as many such values.
TEST(ValueWarningsTest, HalfOfTheValuesBesideAVocabularyAreNothingUnusual) {
  EXPECT_THAT(OfShares({1000, 0, 1000, 698, true}, {}), testing::IsEmpty());
  EXPECT_THAT(OfShares({1000, 1000, 1000, 698, true}, {1000, 1000, 0, 0, true}), testing::IsEmpty());
  EXPECT_THAT(OfShares({1000, 0, 1000, 698, true}, {1000, 0, 1000, 700, true}), testing::IsEmpty());
  EXPECT_THAT(
      OfShares({100, 0, 100, 80, true}, {100, 0, 100, 2}),
      testing::ElementsAre(testing::Pair(
          "city unknown", testing::StartsWith("slot \"city\": 80 % of its values are not in its vocabulary, and "
                                              "2 % in the evaluation before: are they written as in training"))));
}

TEST(ValueWarningsTest, TellOfRowsThatHaveNoValueAnyMore) {
  EXPECT_THAT(
      OfShares({100, 17, 83, 0}, {100, 0, 100, 0}),
      testing::ElementsAre(testing::Pair(
          "city empty", testing::StartsWith("slot \"city\": 17 % of the rows have no value of it, and 0 % in the "
                                            "evaluation before: is a word of the training, like NA, read"))));
  EXPECT_THAT(OfShares({100, 60, 40, 0}, {100, 55, 45, 0}), testing::IsEmpty());
}

// A model that was trained on winter and summer used to be warned of the half of them that came later.
TEST(ValueWarningsTest, AZoneIsComparedWithAllThatTrained) {
  PassStats read;
  read.names.lines = 2;
  read.names.clocks = {"time"};
  read.names.trained_zones["time"] = {{"+01:00", {.text = "+01:00", .place = "old:2:1"}},
                                      {"+02:00", {.text = "+02:00", .place = "old:3:1"}}};
  for (const std::string zone : {"+01:00", "+02:00"}) {
    read.names.zones["time"] = {{zone, {.text = "2026-07-01T10:00" + zone, .place = "new:2:1"}}};
    EXPECT_THAT(ValueWarnings(read, Reads::kModel), testing::IsEmpty()) << zone;
  }
  const auto told = [&read](const std::string& zone) {
    read.names.zones["time"] = {{zone, {.text = "2026-07-01T10:00" + zone, .place = "new:2:1"}}};
    return ValueWarnings(read, Reads::kModel)["time of another zone"];
  };
  EXPECT_EQ(
      told("+09:00"),
      "column \"time\" has times with the zone +09:00, such as \"2026-07-01T10:00+09:00\" (new:2:1), and the zones "
      "+01:00, +02:00 where the training began (old:2:1): date_part takes what the clock shows, so the same instant "
      "has another hour; convert them, or retrain");
  EXPECT_THAT(told("+03:00"), testing::HasSubstr("Daylight saving time of one zone needs no change"));
  EXPECT_THAT(told(""), testing::HasSubstr("has times with no zone"));
  read.names.clocks.clear();
  EXPECT_EQ(told("+09:00"), "") << "the same instant is the same word";
  EXPECT_THAT(told(""), testing::HasSubstr("the same time is two words; convert them, or retrain"));
}

TEST(ValueWarningsTest, TellOfTextsThatAreNotUtf8) {
  PassStats all = JsonPart(8, false);
  all.names = {};
  for (const uint64_t line : {9, 3}) {
    PassStats part;
    part.names.lines = 2;
    part.names.not_utf8 = {{"city", {.text = "K\xF6ln", .place = "log:" + std::to_string(line) + ":2", .line = line}}};
    part.names.not_utf8_values = {{"city", 2}};
    AddPassStats(part, &all);
  }
  EXPECT_THAT(ValueWarnings(all, Reads::kModel),
              testing::ElementsAre(testing::Pair(
                  "city not UTF-8",
                  testing::StartsWith("column \"city\": 4 texts are not UTF-8, first \"K\\xf6ln\" (log:3:2); they "
                                      "get other ids than the same texts in UTF-8: convert the data"))));
}

}  // namespace
}  // namespace millrace
