#include "datafeed/number_forms.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <regex>
#include <span>
#include <string>
#include <vector>

#include "core/numbers.h"
#include "core/rng.h"
#include "data_feed.pb.h"
#include "datafeed/column_feed.h"

namespace millrace {
namespace {

std::string FormsOf(const NumberForms& forms) {
  ValueNames names;
  forms.AddTo(&names);
  return std::string(names.whole.empty() ? "" : "5 ") + (names.whole_floats.empty() ? "" : "5.0 ") +
         (names.others.empty() ? "" : "others");
}

class NumberFormsTest : public ::testing::Test {
 protected:
  NumberFormsTest() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: 'csv' feature { name: 'a' hash {} }", &desc_));
  }
  /// Of a column of these texts, behind each of which stand `behind` and no other byte.
  std::string Of(const std::vector<std::string>& column, char behind) const {
    NumberForms forms(columns_, desc_, true);
    for (const std::string& text : column) {
      const std::unique_ptr<char[]> bytes(new char[text.size() + kNumberPadding]);
      std::memcpy(bytes.get(), text.data(), text.size());
      std::memset(bytes.get() + text.size(), behind, kNumberPadding);
      const std::vector<std::string_view> texts = {{bytes.get(), text.size()}};
      const std::vector<size_t> begins = {0};
      forms.TakeLine({texts[0], texts, begins, {}});
    }
    return FormsOf(forms);
  }

  /// Of a column whose rows are lists of these texts.
  std::string OfLists(const std::vector<std::vector<std::string>>& column) const {
    NumberForms forms(columns_, desc_, true);
    for (const std::vector<std::string>& list : column) {
      std::string line;
      for (const std::string& text : list) line += text + ',';
      line.append(kNumberPadding, ' ');
      std::vector<std::string_view> items;
      size_t begin = 0;
      for (const std::string& text : list) {
        items.push_back(std::string_view(line).substr(begin, text.size()));
        begin += text.size() + 1;
      }
      const std::vector<std::string_view> texts = {{}};
      const std::vector<size_t> begins = {0};
      const std::vector<std::span<const std::string_view>> lists = {items};
      forms.LookForOtherBytes({line, texts, begins, lists});
      forms.TakeLine({line, texts, begins, lists});
    }
    ValueNames names;
    forms.AddTo(&names);
    std::string found = FormsOf(forms);
    for (const auto* const values : names.forms()) {
      for (const auto& [name, value] : *values) found += "@" + std::to_string(value.column);
    }
    return found;
  }

  DataFeedDesc desc_;
  const std::vector<std::string> columns_ = {"a"};
};

/// As the documents say it, by a regular expression.
std::string Expected(const std::string& text) {
  static const std::regex whole("-?[0-9]+");
  static const std::regex floating("-?[0-9]+([.]([0-9]*[1-9])?0*)?([eE][+]?([0-9]{1,3}))?");
  if (IsMissingMarker(text)) return "";
  if (std::regex_match(text, whole)) return "5 ";
  std::smatch part;
  if (!std::regex_match(text, part, floating) || part[1] == ".") return "others";
  return part.length(2) <= (part[4].matched ? std::stoi(part[4]) : 0) ? "5.0 " : "others";
}

TEST_F(NumberFormsTest, AreThoseOfEachCharacter) {
  Rng rng(7);
  for (int i = 0; i < 10000; ++i) {
    std::string text;
    const uint64_t kind = rng.Below(4);
    for (uint64_t size = 1 + rng.Below(30); size > 0; --size) {
      text += kind == 0 ? "0123456789.-0051x/:\x80\xb5"
                          "eE+"[rng.Below(24)]
                        : static_cast<char>('0' + rng.Below(10));
    }
    if (kind == 2) text += i % 2 == 0 ? ".0" : ".250e+" + std::to_string(rng.Below(4));
    if (kind == 3) text[rng.Below(text.size())] = static_cast<char>(rng.Below(256));
    if (rng.Below(8) == 0) text.insert(0, "-");
    ASSERT_EQ(Of({text}, rng.Below(2) == 0 ? '7' : '\xff'), Expected(text)) << text;
  }
}

// Nothing was known of columns of lists, for which a training looked through a million rows at its start.
TEST_F(NumberFormsTest, OfListsAreThoseOfTheirValues) {
  EXPECT_EQ(OfLists({{"17", "2"}, {"3"}}), "5 @1");
  EXPECT_EQ(OfLists({{"17", "2.0"}}), "5 5.0 @1@4");
  EXPECT_EQ(OfLists({{"17", "land"}, {"2.0"}}), "5 others@1");
  EXPECT_EQ(OfLists({{"land", "K\xf6ln"}}), "others@7");
  EXPECT_EQ(OfLists({{}, {}}), "");
}

TEST_F(NumberFormsTest, OfAColumnDoNotHangOnTheOrderOfItsRows) {
  EXPECT_EQ(Of({"5", "", "NA", "5.0"}, ','), "5 5.0 ");
  EXPECT_EQ(Of({"5.0", "6"}, ','), "5 5.0 ");
  EXPECT_EQ(Of({"10", "10.1"}, ','), "5 others");
  EXPECT_EQ(Of({"1.2345678901234568e+18", "1E3"}, ','), "5.0 ");
  EXPECT_EQ(Of({"10", "land"}, ','), "5 others");
}

}  // namespace
}  // namespace millrace
