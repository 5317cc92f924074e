#include "features/feature_row.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "allocation_counter.h"
#include "core/numbers.h"
#include "data_feed.pb.h"
#include "features/feature_spec.h"
#include "features/text_hash.h"

namespace millrace {
namespace {

DataFeedDesc DescOf(const std::string& text) {
  DataFeedDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &desc)) << text;
  return desc;
}

/// A plan of all features of a description, and texts with their padding.
class Row {
 public:
  explicit Row(const std::string& text) {
    std::vector<std::string> names;
    std::vector<FeatureMistake> mistakes;
    const DataFeedDesc desc = DescOf(text);
    for (const FeatureSpec& spec : ReadFeatures(desc, &mistakes)) names.push_back(spec.name);
    Result<std::shared_ptr<const FeaturePlan>> plan = FeaturePlan::Create(desc, names);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    row_ = std::make_unique<FeatureRow>(*plan);
  }

  bool Make(const std::vector<std::string>& values) {
    texts_ = values;
    std::vector<std::string_view> columns;
    for (std::string& text : texts_) {
      const size_t size = text.size();
      text.append(kNumberPadding, '\0');
      columns.push_back(std::string_view(text).substr(0, size));
    }
    return row_->Make(columns);
  }
  std::vector<uint64_t> Ids(int feature) const { return {row_->ids(feature).begin(), row_->ids(feature).end()}; }
  std::vector<float> Floats(int feature) const { return {row_->floats(feature).begin(), row_->floats(feature).end()}; }
  const FeatureRow& row() const { return *row_; }

 private:
  std::unique_ptr<FeatureRow> row_;
  std::vector<std::string> texts_;
};

using Ids = std::vector<uint64_t>;

std::string Bytes(const Ids& ids) { return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(uint64_t)}; }

// Each was once looked for among all others, for a minute under a sanitizer.
TEST(FeatureRowTest, ARangeOfTensOfThousandsOfColumnsHasAFeatureForEach) {
  const Row row(
      R"(feature { name: "C1..C31001" hash {} } feature { name: "again" from: "C31001" from: "C7" hash {} })");
  EXPECT_EQ(row.row().plan().columns().size(), 31001U);
  ASSERT_EQ(row.row().plan().features().size(), 31002U);
  EXPECT_EQ(row.row().plan().features().back().columns, (std::vector<int>{31000, 6}));
}

TEST(FeatureRowTest, HashesAreThoseOfTheDocument) {
  // As the xxhash package of Python computes it: xxh3_64_intdigest(b"x", seed=xxh3_64_intdigest(b"a")).
  EXPECT_EQ(TextHash("a"), 16629034431890738719U);
  Row row(R"(feature { name: "a" hash {} } feature { name: "b" from: "a" hash { salt: "a" buckets: 1000 } }
             feature { name: "c" from: "a" hash { salt: "" } }
             feature { name: "d" from: "n" bucketize { boundaries: [1, 2] } hash {} })");
  ASSERT_TRUE(row.Make({"x", "1.5"}));
  EXPECT_EQ(row.Ids(0), Ids{TextHash("x", TextHash("a"))});
  EXPECT_EQ(row.Ids(0), Ids{11674009546516466376U});
  EXPECT_EQ(row.Ids(1), Ids{TextHash("x", TextHash("a")) % 1000});
  EXPECT_EQ(row.Ids(2), Ids{TextHash("x", TextHash(""))});
  EXPECT_EQ(row.Ids(3), Ids{TextHash(Bytes({1}), TextHash("d"))});
}

TEST(FeatureRowTest, CrossesAreThoseOfTheDocument) {
  Row row(R"(feature { name: "w" split {} id {} } feature { name: "x" from: "t" split {} of: "w" cross {} })");
  ASSERT_TRUE(row.Make({"7|9", "a|b"}));
  const uint64_t seed = TextHash("x");
  const auto part = [&](const char* text) { return TextHash(text, seed); };
  EXPECT_EQ(row.Ids(1), (Ids{TextHash(Bytes({part("a"), 7}), seed), TextHash(Bytes({part("a"), 9}), seed),
                             TextHash(Bytes({part("b"), 7}), seed), TextHash(Bytes({part("b"), 9}), seed)}));
}

TEST(FeatureRowTest, ACrossOfTooManyValuesIsABadValue) {
  Row row(R"(feature { name: "x" from: ["a", "b"] split { by: " " } cross {} })");
  std::string many;
  for (int i = 0; i < 257; ++i) many += "v ";
  EXPECT_FALSE(row.Make({many, many}));
  EXPECT_EQ(row.row().error().kind, FeatureError::Kind::kTooMany);
}

TEST(FeatureRowTest, NgramsOfPartsAndOfCharacters) {
  Row row(R"(feature { name: "p" split { by: " " } ngrams { least: 1 most: 2 } hash { salt: "s" } }
             feature { name: "c" ngrams { least: 2 most: 2 of: CHARACTERS } hash { salt: "s" } })");
  const auto hash = [](const char* text) { return TextHash(text, TextHash("s")); };
  ASSERT_TRUE(row.Make({"the  big cat", "aß\xFFz"}));
  EXPECT_EQ(row.Ids(0), (Ids{hash("the"), hash("big"), hash("cat"), hash("the big"), hash("big cat")}));
  EXPECT_EQ(row.Ids(1), (Ids{hash("aß"), hash("ß\xFF"), hash("\xFFz")}));
  ASSERT_TRUE(row.Make({"", "a"}));
  EXPECT_EQ(row.Ids(0), Ids{});
  EXPECT_EQ(row.Ids(1), Ids{});
}

// "。，" has the bytes e3 80 82 ef bc 8c, of which every word of kana begins with one and many end in one.
TEST(FeatureRowTest, StripTakesOffCharactersNotBytes) {
  const std::string feature = R"(feature { name: "a" strip: "。， é" hash {} })";
  Row row(feature + "feature_states { text_rule: 2 }");
  const auto is = [&row](const char* value, const char* left) {
    EXPECT_TRUE(row.Make({value}));
    EXPECT_EQ(row.Ids(0), *left == '\0' ? Ids{} : Ids{TextHash(left, TextHash("a"))}) << value;
  };
  for (const char* word : {"カー", "カヌ", "カヂ", "第一", "第丂", "Ĥ", "ĩ", "\xa9", "a\xe3", "\x82", "a\xe3\x80"})
    is(word, word);
  is(" 。カー。，é", "カー");
  is("éa\x82。", "a\x82");
  is("。，。", "");
  // A model from before keeps its ids.
  Row before(feature);
  ASSERT_TRUE(before.Make({"カヌ"}));
  EXPECT_EQ(before.Ids(0), Ids{TextHash("\xab\xe3\x83", TextHash("a"))});
  // Characters of another encoding are bytes.
  Row latin("feature { name: \"a\" strip: \"\\351\" hash {} } feature_states { text_rule: 2 }");
  ASSERT_TRUE(latin.Make({"\xe9t\xe9"}));
  EXPECT_EQ(latin.Ids(0), Ids{TextHash("t", TextHash("a"))});
}

// A line of 4,000,000 characters, packed 3,925 bytes, took 3.9 GB.
TEST(FeatureRowTest, TooManyNgramsOfAValueAreABadValue) {
  Row characters(R"(feature { name: "c" ngrams { least: 1 most: 16 of: CHARACTERS } hash {} })");
  ASSERT_TRUE(characters.Make({std::string(16391, 'x')}));
  EXPECT_EQ(characters.Ids(0).size(), 16U * 16391 - 120);
  EXPECT_FALSE(characters.Make({std::string(16392, 'x')}));
  EXPECT_EQ(characters.row().error().kind, FeatureError::Kind::kTooMany);
  EXPECT_EQ(characters.row().error().expected, "at most 262144 n-grams of a value");
  // Of all parts of a value together.
  Row parts(R"(feature { name: "p" split { by: " " } ngrams { most: 2 of: CHARACTERS } hash {} })");
  std::string many;
  for (int i = 0; i < 90000; ++i) many += "xy ";
  EXPECT_FALSE(parts.Make({many}));
  ASSERT_TRUE(parts.Make({many.substr(0, many.size() / 2)}));
  Row words(R"(feature { name: "w" split { by: " " } ngrams { most: 2 } hash {} })");
  EXPECT_FALSE(words.Make({many + many}));
  Row long_words(R"(feature { name: "w" split { by: " " } ngrams { most: 16 } hash {} })");
  EXPECT_FALSE(long_words.Make({std::string(1000000, 'x') + " " + std::string(30000000, 'y') + " z"}));
  EXPECT_EQ(long_words.row().error().expected, "n-grams of at most 67108864 bytes together in a value");
}

TEST(FeatureRowTest, DefaultsStandForMissingValuesAlone) {
  Row row(R"(feature { name: "x" from: ["a", "b"] default: "-1" } feature { name: "y" from: "a" id {} default: "5" })");
  ASSERT_TRUE(row.Make({"", "2"}));
  EXPECT_EQ(row.Floats(0), (std::vector<float>{-1, 2}));
  EXPECT_EQ(row.Ids(1), Ids{5});
}

TEST(FeatureRowTest, ADefaultThatAFeatureDoesNotTakeIsRefused) {
  const DataFeedDesc desc = DescOf(R"(feature { name: "x" default: "none" })");
  const std::vector<std::string> slots = {"x"};
  EXPECT_EQ(FeaturePlan::Create(desc, slots).status().message(),
            R"(data_desc.feature "x": default: expected a number, found "none")");
}

TEST(FeatureRowTest, APlanReadsTheColumnsOfItsSlotsAlone) {
  const DataFeedDesc desc = DescOf(R"(feature { name: "label" id {} } feature { name: "a" hash {} }
                                      feature { name: "b" hash {} } feature { name: "x" of: ["a", "b"] cross {} })");
  const std::vector<std::string> slots = {"x"};
  const auto plan = FeaturePlan::Create(desc, slots);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ((*plan)->columns(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ((*plan)->FeatureOfSlot(0), 2);
}

TEST(FeatureRowTest, AWarmRowAllocatesNothing) {
  const DataFeedDesc desc = DescOf(R"(
      feature { name: "h" from: "a" hash {} } feature { name: "v" from: "a" vocabulary { words: "x" } }
      feature { name: "n" from: ["b", "c"] default: "1" clip { min: 0 } log1p {} standardize { mean: 1 deviation: 2 } }
      feature { name: "k" from: "b" bucketize { boundaries: [1, 2] } hash {} }
      feature { name: "s" from: "d" split {} strip: " " ngrams { most: 3 } hash {} }
      feature { name: "t" from: "e" date_part { part: WEEKDAY } id {} }
      feature { name: "x" from: "a" of: ["k", "s"] cross {} })");
  const std::vector<std::string> slots = {"h", "v", "n", "k", "s", "t", "x"};
  FeatureRow row(FeaturePlan::Create(desc, slots).value());
  std::string texts[] = {"x", "1.5", "", "a| b |c", "2026-11-26 10:00"};
  std::vector<std::string_view> columns;
  for (std::string& text : texts) {
    const size_t size = text.size();
    text.append(kNumberPadding, '\0');
    columns.push_back(std::string_view(text).substr(0, size));
  }
  ASSERT_TRUE(row.Make(columns));
  const AllocationCounter allocations;
  for (int i = 0; i < 100; ++i) row.Make(columns);
  EXPECT_EQ(allocations.count(), 0);
}

TEST(FeatureRowTest, ErrorsSayWhichPartOfWhichColumn) {
  Row row(R"(feature { name: "x" from: ["a", "b"] split { by: ";" } id {} })");
  EXPECT_FALSE(row.Make({"1;2", "3;-4"}));
  const FeatureError& error = row.row().error();
  EXPECT_EQ(error.kind, FeatureError::Kind::kNegative);
  EXPECT_EQ(row.row().plan().columns()[static_cast<size_t>(error.column)], "b");
  EXPECT_EQ(error.text, "-4");
  EXPECT_TRUE(row.Make({"1;2", "3"}));
}

}  // namespace
}  // namespace millrace
