#include "core/decimal_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace millrace {
namespace {

// The powers of ten exactly representable as double.
constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// A single rounding.
double TimesPower(double value, int power) { return power < 0 ? value / kPowers[-power] : value * kPowers[power]; }

// `scaled` rounded to an integer; -1 if it is so close to a half that one rounding error could decide.
int64_t RoundedSurely(double scaled) {
  if (!(scaled < 1e15)) return -1;
  const auto whole = static_cast<int64_t>(scaled);
  const double over_half = scaled - static_cast<double>(whole) - 0.5;
  if (std::abs(over_half) <= scaled * 0x1p-51) return -1;
  return whole + (over_half > 0 ? 1 : 0);
}

// Writes exactly `count` digits.
char* WriteDigits(uint64_t number, int count, char* out) {
  for (int i = count; i-- > 0; number /= 10) out[i] = static_cast<char>('0' + number % 10);
  return out + count;
}

// 0.00012 to 123456 in fixed notation, others as 1.2e-05.
char* WriteGeneral(const char* digits, int exponent, char* out) {
  int count = 6;
  while (count > 1 && digits[count - 1] == '0') --count;
  const bool is_scientific = exponent < -4 || exponent >= 6;
  const int before_point = is_scientific ? 1 : exponent + 1;
  if (before_point <= 0) {
    out = std::copy_n("0.000", 2 - before_point, out);
    return std::copy_n(digits, count, out);
  }
  out = std::copy_n(digits, before_point, out);
  if (count > before_point) {
    *out++ = '.';
    out = std::copy(digits + before_point, digits + count, out);
  }
  if (!is_scientific) return out;
  *out++ = 'e';
  *out++ = exponent < 0 ? '-' : '+';
  return WriteDigits(static_cast<uint64_t>(std::abs(exponent)), 2, out);
}

}  // namespace

char* WriteSixDigits(double value, char* out) {
  const double size = std::abs(value);
  char* const start = out;
  if (std::signbit(value)) *out++ = '-';
  if (size == 0) {
    *out++ = '0';
    return out;
  }
  if (size >= 1e-16 && size < 1e27) {
    int exponent = (std::ilogb(size) * 1233) >> 12;  // times log10(2): the decimal exponent, or one less
    double scaled = TimesPower(size, 5 - exponent);
    if (scaled >= 1e6) scaled = TimesPower(size, 5 - ++exponent);
    int64_t six = RoundedSurely(scaled);
    if (six == 1000000) {
      six = 100000;
      ++exponent;
    }
    if (six >= 100000) {
      char digits[6];
      WriteDigits(static_cast<uint64_t>(six), 6, digits);
      return WriteGeneral(digits, exponent, out);
    }
  }
  return std::to_chars(start, start + kMostDecimalText, value, std::chars_format::general, 6).ptr;
}

char* WriteDecimals(double value, int decimals, char* out) {
  char* const start = out;
  if (decimals <= 15) {
    const double power = kPowers[decimals];
    const int64_t scaled = RoundedSurely(std::abs(value) * power);
    if (scaled >= 0) {
      if (std::signbit(value)) *out++ = '-';
      const auto unit = static_cast<int64_t>(power);
      out = std::to_chars(out, out + 20, scaled / unit).ptr;
      if (decimals == 0) return out;
      *out++ = '.';
      return WriteDigits(static_cast<uint64_t>(scaled % unit), decimals, out);
    }
  }
  return std::to_chars(start, start + kMostDecimalText, value, std::chars_format::fixed, decimals).ptr;
}

}  // namespace millrace
