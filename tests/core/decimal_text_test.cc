#include "core/decimal_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <string>

#include "core/rng.h"

namespace millrace {
namespace {

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
