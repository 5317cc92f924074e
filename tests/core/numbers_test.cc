#include "core/numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "core/rng.h"

namespace millrace {
namespace {

std::string Printf(const char* format, int digits, double value) {
  char text[400];
  std::snprintf(text, sizeof(text), format, digits, value);
  return text;
}

TEST(NumberFormat, WritesWhatPrintfWritesInTheCLocale) {
  for (const double value : {0.0, -0.0, 0.5, 1.0 / 3, -2.675, 1e-7, 123456.5, 1e15, 1.7e308, 5e-324,
                             std::numeric_limits<double>::infinity()}) {
    for (const int digits : {0, 1, 2, 6, 9}) {
      EXPECT_EQ(FixedNumber(value, digits), Printf("%.*f", digits, value));
      EXPECT_EQ(GeneralNumber(value, digits), Printf("%.*g", digits, value));
    }
  }
  EXPECT_EQ(FixedNumber(-std::nan(""), 2), "nan");
}

// FixedNumber(x, 6) showed the max_norm that is refused as -0.000000.
TEST(ShortestNumber, ShowsWhatIsRefused) {
  EXPECT_EQ(ShortestNumber(-1e-9), "-1e-09");
  EXPECT_EQ(ShortestNumber(1.0000001F), "1.0000001");
  EXPECT_EQ(ShortestNumber(0.1), "0.1");
  EXPECT_EQ(ShortestNumber(0.1F), "0.1");
  EXPECT_EQ(ShortestNumber(-std::nan("")), "nan");
}

TEST(ReadWhole, ReadsAWholeTextAndNoPlus) {
  int64_t whole = 0;
  EXPECT_TRUE(ReadWhole("-12", &whole));
  EXPECT_EQ(whole, -12);
  EXPECT_TRUE(ReadSigned("+12", &whole));
  EXPECT_EQ(whole, 12);
  for (const char* text : {"", "+", "+-1", "1 ", " 1", "1.0", "9223372036854775808"}) {
    EXPECT_FALSE(ReadWhole(text, &whole)) << text;
    EXPECT_FALSE(ReadSigned(text, &whole)) << text;
  }
  EXPECT_FALSE(ReadWhole("+1", &whole));
  uint16_t hexadecimal = 0;
  EXPECT_TRUE(ReadWhole("1fF", &hexadecimal, 16));
  EXPECT_EQ(hexadecimal, 0x1FF);
  EXPECT_FALSE(ReadWhole("10000", &hexadecimal, 16));
}

TEST(ExactNumber, HasTheDigitsOfItsType) {
  EXPECT_EQ(ExactNumber(0.1F), "0.1");
  EXPECT_EQ(ExactNumber(static_cast<double>(0.1F)), "0.10000000149011612");
  EXPECT_EQ(ExactNumber(~uint64_t{0}), "18446744073709551615");
  std::string text = "x";
  AppendExact(-HUGE_VAL, &text);
  EXPECT_EQ(text, "x-inf");
}

TEST(ParseDouble, ReadsAWholeTextAndNothingElse) {
  double value = 7;
  for (const char* text : {"", " ", "0,25", "1 ", "1.5x", "+", "0x", "nane"}) {
    EXPECT_EQ(ParseDouble(text, &value), FloatText::kNoNumber) << text;
  }
  EXPECT_EQ(value, 7);
  const std::pair<const char*, double> numbers[] = {
      {"0.25", 0.25}, {"-1e-300", -1e-300}, {"+.5", 0.5}, {"0x1p-2", 0.25}, {"123456789.125", 123456789.125}};
  for (const auto& [text, expected] : numbers) {
    EXPECT_EQ(ParseDouble(text, &value), FloatText::kFinite) << text;
    EXPECT_EQ(value, expected) << text;
  }
  EXPECT_EQ(ParseDouble("-1e400", &value), FloatText::kOverflow);
  EXPECT_EQ(value, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(ParseDouble("inf", &value), FloatText::kNonFinite);
}

bool Read(std::string text, double* value, char behind = '7') {
  const size_t size = text.size();
  text.append(kNumberPadding, behind);
  return ReadNumber(std::string_view(text).substr(0, size), value);
}

TEST(NumberTextTest, DecimalsAreRoundedAsTheStandardLibraryDoes) {
  Rng rng(7);
  for (int i = 0; i < 200000; ++i) {
    std::string text = rng.Below(3) == 0 ? "-" : "";
    for (uint64_t n = 1 + rng.Below(9); n > 0; --n) text += static_cast<char>('0' + rng.Below(10));
    if (rng.Below(2) == 0) {
      text += '.';
      for (uint64_t n = rng.Below(9); n > 0; --n) text += static_cast<char>('0' + rng.Below(10));
    }
    if (rng.Below(5) == 0) text += "e-" + std::to_string(rng.Below(30));
    double value = 0;
    ASSERT_TRUE(Read(text, &value)) << text;
    ASSERT_EQ(value, std::strtod(text.c_str(), nullptr)) << text;
  }
}

TEST(NumberTextTest, WhatIsNoNumberIsRefusedWhateverStandsBehindIt) {
  double value = 0;
  for (const char* text :
       {"", "-", "+", ".", "1x", "x1", "1,", "--1", "+-1", "1e", "0x10", "1 ", " 1", "1.2.3", "1e999"}) {
    for (const char behind : {'7', '.', ',', '\0'}) EXPECT_FALSE(Read(text, &value, behind)) << text;
  }
  EXPECT_TRUE(Read("12", &value, '.'));
  EXPECT_EQ(value, 12);
  EXPECT_TRUE(Read("+2", &value));
  EXPECT_EQ(value, 2);
  EXPECT_TRUE(Read(".5", &value));
  EXPECT_EQ(value, 0.5);
}

std::string ToChars(double value, std::chars_format format, int precision) {
  char text[kMostDecimalText];
  return {text, std::to_chars(text, text + sizeof(text), value, format, precision).ptr};
}

std::string SixDigits(double value) {
  char text[kMostDecimalText];
  return {text, WriteSixDigits(value, text)};
}

std::string Decimals(double value, int decimals) {
  char text[kMostDecimalText];
  return {text, WriteDecimals(value, decimals, text)};
}

void ExpectAsToChars(double value) {
  ASSERT_EQ(SixDigits(value), ToChars(value, std::chars_format::general, 6));
  for (const int decimals : {0, 1, 4, 9, 15, 16, 50}) {
    ASSERT_EQ(Decimals(value, decimals), ToChars(value, std::chars_format::fixed, decimals)) << decimals;
  }
}

TEST(DecimalText, EveryKindOfNumberIsWrittenAsToCharsWritesIt) {
  Rng random(1);
  for (int i = 0; i < 30000; ++i) {
    const uint64_t bits = random.Next();
    ExpectAsToChars(std::bit_cast<float>(static_cast<uint32_t>(bits)));  // of any size, NaN and infinity too
    ExpectAsToChars((random.Uniform() - 0.5) * 8);
    ExpectAsToChars(static_cast<float>(random.Uniform()));
    ExpectAsToChars(static_cast<double>(static_cast<int64_t>(bits) >> (bits & 63)) / 1024);  // halves among them
    if (i % 16 == 0) ExpectAsToChars(std::bit_cast<double>(random.Next()));
  }
}

TEST(DecimalText, NeighboursOfHalvesAndOfPowersOfTenAreWrittenAsToCharsWritesThem) {
  for (int power = -30; power <= 40; ++power) {
    const double ten = std::pow(10.0, power);
    for (const double factor : {1.0, 9.999995, 1.000005, 9.99999, 1.234565, 2.5, 0.5}) {
      const double value = ten * factor;
      for (const double near : {value, std::nextafter(value, 0.0), std::nextafter(value, 1e300)}) {
        ExpectAsToChars(near);
        ExpectAsToChars(-near);
        ExpectAsToChars(static_cast<double>(static_cast<float>(near)));
      }
    }
  }
  ExpectAsToChars(0.0);
  ExpectAsToChars(-0.0);
  EXPECT_EQ(SixDigits(0.25), "0.25");
  EXPECT_EQ(SixDigits(-1.5e-5), "-1.5e-05");
  EXPECT_EQ(SixDigits(1234567), "1.23457e+06");
  EXPECT_EQ(Decimals(0.25, 9), "0.250000000");
}

}  // namespace
}  // namespace millrace
