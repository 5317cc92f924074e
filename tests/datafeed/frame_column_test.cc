#include "datafeed/frame_column.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace millrace {
namespace {

/// Memory with nothing behind it, so that a read beyond the end of a column is seen.
template <class T>
std::shared_ptr<std::vector<T>> Memory(std::vector<T> values) {
  values.shrink_to_fit();
  return std::make_shared<std::vector<T>>(std::move(values));
}

/// A column of Arrow, made by hand.
struct Column {
  std::string format;
  int64_t length = 0;
  int64_t offset = 0;
  std::vector<std::shared_ptr<void>> kept = {};
  std::vector<const void*> buffers = {};
  std::shared_ptr<Column> inner = nullptr;  ///< of a list
  std::shared_ptr<Column> words = nullptr;  ///< of a dictionary
  std::string name = "x";
  ArrowSchema schema{};
  ArrowArray array{};
  ArrowSchema* inner_schema = nullptr;
  ArrowArray* inner_array = nullptr;

  template <class T>
  Column& With(std::vector<T> values) {
    const auto memory = Memory(std::move(values));
    kept.push_back(memory);
    buffers.push_back(memory->data());
    return *this;
  }
  Column& WithoutNulls() {
    buffers.push_back(nullptr);
    return *this;
  }
  void Link() {
    if (inner != nullptr) {
      inner->Link();
      inner_schema = &inner->schema;
      inner_array = &inner->array;
    }
    if (words != nullptr) words->Link();
    schema = {format.c_str(),
              name.c_str(),
              nullptr,
              0,
              inner == nullptr ? 0 : 1,
              &inner_schema,
              words == nullptr ? nullptr : &words->schema,
              nullptr,
              nullptr};
    array = {length,
             buffers.empty() || buffers[0] == nullptr ? 0 : -1,
             offset,
             static_cast<int64_t>(buffers.size()),
             inner == nullptr ? 0 : 1,
             buffers.data(),
             &inner_array,
             words == nullptr ? nullptr : &words->array,
             nullptr,
             nullptr};
  }
};

template <class T>
Column Numbers(std::string format, std::vector<T> values) {
  Column column{std::move(format), static_cast<int64_t>(values.size())};
  column.WithoutNulls().With(std::move(values));
  return column;
}

Column Texts(const std::vector<std::string>& texts) {
  std::vector<int32_t> offsets{0};
  std::vector<char> bytes;
  for (const std::string& text : texts) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    offsets.push_back(static_cast<int32_t>(bytes.size()));
  }
  Column column{"u", static_cast<int64_t>(texts.size())};
  column.WithoutNulls().With(std::move(offsets)).With(std::move(bytes));
  return column;
}

/// The texts of all rows; those of lists with "|" between them.
std::vector<std::string> TextsOf(Column column, TextRule rule = kNewTextRule, const std::string& zoned_unit = "") {
  column.Link();
  const FrameColumn read(column.schema, column.array, zoned_unit);
  EXPECT_TRUE(static_cast<bool>(read)) << read.type_name();
  std::vector<std::string> texts;
  std::string scratch;
  for (int64_t row = 0; row < column.length; ++row) {
    if (!read.is_list()) {
      texts.emplace_back(read.Text(row, rule, &scratch));
      continue;
    }
    int64_t begin = 0;
    int64_t end = 0;
    read.List(row, &begin, &end);
    std::string& all = texts.emplace_back();
    for (; begin < end; ++begin) (all += read.items().Text(begin, rule, &scratch)) += "|";
  }
  return texts;
}

using Strings = std::vector<std::string>;

TEST(FrameColumn, NumbersHaveTheTextsOfCsv) {
  EXPECT_EQ(TextsOf(Numbers<int8_t>("c", {-128, 0, 127})), (Strings{"-128", "0", "127"}));
  EXPECT_EQ(TextsOf(Numbers<int64_t>("l", {INT64_MIN, INT64_MAX})),
            (Strings{"-9223372036854775808", "9223372036854775807"}));
  EXPECT_EQ(TextsOf(Numbers<uint64_t>("L", {UINT64_MAX})), (Strings{"18446744073709551615"}));
  EXPECT_EQ(TextsOf(Numbers<double>("g", {0.1, 3, -0.0, 1e16, 9999999999999998, 1e-4, 1e-5, 5e-324, 1e22, 1.0 / 3})),
            (Strings{"0.1", "3.0", "-0.0", "1e+16", "9999999999999998.0", "0.0001", "1e-05", "5e-324", "1e+22",
                     "0.3333333333333333"}));
  EXPECT_EQ(TextsOf(Numbers<float>("f", {0.1F, 16777216.0F})), (Strings{"0.1", "16777216.0"}));
  EXPECT_EQ(TextsOf(Numbers<double>(
                "g", {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})),
            (Strings{"nan", "inf"}));
  EXPECT_EQ(TextsOf(Numbers<uint16_t>("e", {0x3C00, 0xC000, 0x0001, 0x8000, 0x7C00, 0x3555, 0x2E66, 0x7BFF, 0x3C01})),
            (Strings{"1.0", "-2.0", "6e-08", "-0.0", "inf", "0.3333", "0.1", "65500.0", "1.001"}));
}

TEST(FrameColumn, FloatsOfModelsBeforeTheRuleKeepTheirTexts) {
  const std::vector<float> singles = {0.1F, 12345678.0F, 123456789.0F, 1e15F, 1e16F, 1e-5F};
  EXPECT_EQ(TextsOf(Numbers<float>("f", singles)),
            (Strings{"0.1", "12345678.0", "123456790.0", "1000000000000000.0", "1e+16", "1e-05"}));
  EXPECT_EQ(TextsOf(Numbers<float>("f", singles), TextRule::kByFormat),
            (Strings{"0.1", "12345678.0", "123456792.0", "999999986991104.0", "1e+16", "1e-05"}));
  EXPECT_EQ(TextsOf(Numbers<uint16_t>("e", {0x0001, 0x3555}), TextRule::kByFormat),
            (Strings{"5.9604645e-08", "0.33325195"}));
}

TEST(FrameColumn, TimesWithAnOffsetAreWhatClocksShowForModelsBeforeTheRule) {
  const Strings texts = {"2026-11-26 19:00:00.000000+0900", "2026-11-26T19:00:00.5+09:00", "", "x"};
  EXPECT_EQ(TextsOf(Texts(texts), kNewTextRule, "us"), texts);
  EXPECT_EQ(TextsOf(Texts(texts), TextRule::kByFormat, "us"),
            (Strings{"2026-11-26 19:00:00", "2026-11-26 19:00:00.500000", "", "x"}));
}

TEST(FrameColumn, TimesWithAnOffsetInListsAreInstantsForModelsBeforeTheRule) {
  const Strings texts = {"2026-11-26 04:00:00.000000+0900", "2026-11-26T19:00:00.5+09:00", "", "x"};
  EXPECT_EQ(TextsOf(Texts(texts), kNewTextRule, "usZ"), texts);
  EXPECT_EQ(TextsOf(Texts(texts), TextRule::kByFormat, "usZ"),
            (Strings{"2026-11-25 19:00:00Z", "2026-11-26 10:00:00.500000Z", "", "x"}));
}

// In lists they were read as UTC.
TEST(FrameColumn, ATimeOfAnotherZoneThanUtcIsRefusedByName) {
  Column column = Numbers<int64_t>("tsu:Asia/Tokyo", {0});
  column.Link();
  const FrameColumn read(column.schema, column.array);
  EXPECT_FALSE(static_cast<bool>(read));
  EXPECT_EQ(read.type_name(), "a time with the zone \"Asia/Tokyo\"");
}

TEST(FrameColumn, NullsAndRowsOfASlice) {
  Column column = Numbers<int32_t>("i", {10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  const auto bits = Memory<uint8_t>({0b11011111, 0b01});
  column.kept.push_back(bits);
  column.buffers[0] = bits->data();
  column.offset = 4;
  column.length = 6;
  EXPECT_EQ(TextsOf(column), (Strings{"14", "", "16", "17", "18", ""}));
  EXPECT_EQ(TextsOf(Column{.format = "n", .length = 2}), (Strings{"", ""}));
  Column truths{"b", 9};
  truths.WithoutNulls().With<uint8_t>({0b10000001, 1});
  EXPECT_EQ(TextsOf(truths), (Strings{"1", "0", "0", "0", "0", "0", "0", "1", "1"}));
}

TEST(FrameColumn, TextsOfEveryLayout) {
  const std::string is_long(40, 'y');
  EXPECT_EQ(TextsOf(Texts({"a", "", is_long, "z"})), (Strings{"a", "", is_long, "z"}));
  Column views{"vu", 3};
  std::vector<char> bytes(48, 0);
  const int32_t sizes[] = {2, 12, 40};
  for (int i = 0; i < 3; ++i) std::memcpy(bytes.data() + 16 * i, &sizes[i], 4);
  std::memcpy(bytes.data() + 4, "ab", 2);
  std::memcpy(bytes.data() + 20, "abcdefghijkl", 12);
  std::memcpy(bytes.data() + 36, "yyyy", 4);
  views.WithoutNulls().With(bytes).With(std::vector<char>(is_long.begin(), is_long.end())).With<int64_t>({40});
  EXPECT_EQ(TextsOf(views), (Strings{"ab", "abcdefghijkl", is_long}));
  Column words = Numbers<uint8_t>("C", {1, 0, 1});
  words.words = std::make_shared<Column>(Texts({"x", "y"}));
  EXPECT_EQ(TextsOf(words), (Strings{"y", "x", "y"}));
  Column lists{"+l", 3};
  lists.WithoutNulls().With<int32_t>({0, 2, 2, 3});
  lists.inner = std::make_shared<Column>(Numbers<int16_t>("s", {7, 8, 9}));
  EXPECT_EQ(TextsOf(lists), (Strings{"7|8|", "", "9|"}));
}

TEST(FrameColumn, ListsOfNoValuesHaveNoOffsets) {
  Column pairs{"+w:2", 2};
  pairs.WithoutNulls();
  pairs.inner = std::make_shared<Column>(Numbers<int64_t>("l", {1, 2, 3, 4}));
  EXPECT_EQ(TextsOf(pairs), (Strings{"1|2|", "3|4|"}));
  Column nothing{"+w:0", 2};
  nothing.WithoutNulls();
  nothing.inner = std::make_shared<Column>(Numbers<int64_t>("l", {}));
  EXPECT_EQ(TextsOf(nothing), (Strings{"", ""}));
}

TEST(FrameColumn, TimesAndDecimals) {
  EXPECT_EQ(TextsOf(Numbers<int32_t>("tdD", {0, -1, 19723})), (Strings{"1970-01-01", "1969-12-31", "2024-01-01"}));
  EXPECT_EQ(TextsOf(Numbers<int64_t>("tsm:", {-1, 1704067200000})),
            (Strings{"1969-12-31 23:59:59.999", "2024-01-01 00:00:00"}));
  EXPECT_EQ(TextsOf(Numbers<int64_t>("tsn:UTC", {1704067200000000001})), (Strings{"2024-01-01 00:00:00.000000001Z"}));
  Column decimals{"d:10,2", 3};
  decimals.WithoutNulls().With<int64_t>({150, 0, -5, -1, 0, 0});  // two words each, the lower one first
  EXPECT_EQ(TextsOf(decimals), (Strings{"1.50", "-0.05", "0.00"}));
}

TEST(FrameColumn, DecimalsOfLargeScalesStayWithinTheirRoom) {
  const auto decimal = [](int scale, std::vector<int64_t> words) {
    Column column{"d:38," + std::to_string(scale), 1};
    column.WithoutNulls().With<int64_t>(std::move(words));
    return column;
  };
  EXPECT_EQ(TextsOf(decimal(63, {-7, -1})), (Strings{"-0." + std::string(62, '0') + "7"}));
  EXPECT_EQ(TextsOf(decimal(-63, {-7, -1})), (Strings{"-7" + std::string(63, '0')}));
  const std::string most = "170141183460469231731687303715884105728";  // 2^127
  EXPECT_EQ(TextsOf(decimal(38, {0, INT64_MIN})), (Strings{"-" + most.substr(0, 1) + "." + most.substr(1)}));
  EXPECT_EQ(TextsOf(decimal(-63, {0, INT64_MIN})), (Strings{"-" + most + std::string(63, '0')}));
}

TEST(FrameColumn, TypesWithoutTextsAreNamed) {
  for (const auto& [format, name] :
       std::vector<std::pair<std::string, std::string>>{{"+s", "a struct"},
                                                        {"+m", "a map"},
                                                        {"tDs", "a duration"},
                                                        {"ttu", "a time of day"},
                                                        {"w:4", "\"w:4\" of Arrow"},
                                                        {"d:50,2,256", "a decimal of more than 128 bits"},
                                                        {"d:5,64", "a decimal of scale 64"},
                                                        {"d:5,2000", "a decimal of scale 2000"},
                                                        {"d:5,-64", "a decimal of scale -64"},
                                                        {"d:5,-2000,128", "a decimal of scale -2000"}}) {
    Column column{.format = format};
    column.Link();
    const FrameColumn read(column.schema, column.array);
    EXPECT_FALSE(static_cast<bool>(read));
    EXPECT_EQ(read.type_name(), name);
  }
}

}  // namespace
}  // namespace millrace
