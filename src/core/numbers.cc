#include "core/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/digits.h"

namespace millrace {
namespace {

bool IsDigit(char c, bool hex) {
  return (c >= '0' && c <= '9') || (hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
}

// Digits and point of an unsigned number, before its exponent.
std::string_view Mantissa(std::string_view number, bool hex) {
  size_t size = 0;
  while (size < number.size() && (IsDigit(number[size], hex) || number[size] == '.')) ++size;
  return number.substr(0, size);
}

bool HasNonZeroDigit(std::string_view mantissa) {
  return std::any_of(mantissa.begin(), mantissa.end(), [](char c) { return c != '0' && c != '.'; });
}

// Whether a number outside the range of floats is too large, otherwise too small.
bool IsTooLarge(std::string_view number, bool hex) {
  const std::string_view mantissa = Mantissa(number, hex);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  const size_t first = mantissa.find_first_not_of("0.");
  const auto magnitude = static_cast<int64_t>(point) - static_cast<int64_t>(first);
  std::string_view exponent = number.substr(mantissa.size());
  if (!exponent.empty()) exponent.remove_prefix(1);
  const bool negative = !exponent.empty() && exponent.front() == '-';
  if (!exponent.empty() && (negative || exponent.front() == '+')) exponent.remove_prefix(1);
  int64_t power = 0;
  const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  if (error == std::errc::result_out_of_range) return !negative;
  if (negative) power = -power;
  return magnitude * (hex ? 4 : 1) + power > 0;
}

template <class T>
FloatText Parse(std::string_view token, T* value) {
  bool negative = false;
  if (!token.empty() && (token.front() == '+' || token.front() == '-')) {
    negative = token.front() == '-';
    token.remove_prefix(1);
  }
  if (token.empty() || token.front() == '+' || token.front() == '-') return FloatText::kNoNumber;
  const bool hex = token.size() > 2 && token[0] == '0' && (token[1] == 'x' || token[1] == 'X');
  if (hex) token.remove_prefix(2);
  if (hex && Mantissa(token, hex).find_first_not_of('.') == std::string_view::npos) return FloatText::kNoNumber;

  T magnitude = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), magnitude,
                                            hex ? std::chars_format::hex : std::chars_format::general);
  if (end != token.data() + token.size() || error == std::errc::invalid_argument) return FloatText::kNoNumber;

  FloatText result = FloatText::kFinite;
  const bool is_digits = IsDigit(token.front(), hex) || token.front() == '.';
  if (error == std::errc::result_out_of_range) {
    // The standard library does not set the value.
    magnitude = IsTooLarge(token, hex) ? std::numeric_limits<T>::infinity() : T{0};
  }
  if (!std::isfinite(magnitude)) {
    result = is_digits ? FloatText::kOverflow : FloatText::kNonFinite;
  } else if (magnitude == 0 && HasNonZeroDigit(Mantissa(token, hex))) {
    result = FloatText::kUnderflow;
  }
  *value = negative ? -magnitude : magnitude;
  return result;
}

// A single rounding.
double TimesPower(double value, int power) {
  return power < 0 ? value / kExactPowers[-power] : value * kExactPowers[power];
}

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

FloatText ParseFloat(std::string_view token, float* value) { return Parse(token, value); }
FloatText ParseDouble(std::string_view token, double* value) { return Parse(token, value); }

IntegerText ParseInteger(std::string_view token, uint64_t* value) {
  const bool negative = !token.empty() && token.front() == '-';
  if (negative || (!token.empty() && token.front() == '+')) token.remove_prefix(1);
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), *value);
  if (end != token.data() + token.size() || error == std::errc::invalid_argument) return IntegerText::kNoNumber;
  if (negative) return IntegerText::kNegative;
  return error == std::errc() ? IntegerText::kOk : IntegerText::kOverflow;
}

bool ReadNumber(std::string_view text, double* value) {
  const auto ends = [end = text.data() + text.size()](const char* at) { return at == end; };
  return !text.empty() && (ReadPlainDecimal(text.data(), value, nullptr, ends) != nullptr || ReadSigned(text, value));
}

std::string_view WholeNumberText(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  std::string_view whole = text.substr(text.starts_with('+') ? 1 : 0);
  const size_t begin = whole.starts_with('-') && whole.size() == text.size() ? 1 : 0;
  const size_t end = std::min(whole.find_first_not_of(kDigits, begin), whole.size());
  if (end == begin) return text;
  const bool is_whole = end == whole.size() || (whole[end] == '.' && end + 1 < whole.size() &&
                                                whole.find_first_not_of('0', end + 1) == std::string_view::npos);
  return is_whole ? whole.substr(0, end) : text;
}

std::string ShortestNumber(double value) {
  value = WithoutNanSign(value);
  const auto single = static_cast<float>(value);
  return static_cast<double>(single) == value || std::isnan(value) ? ExactNumber(single) : ExactNumber(value);
}

std::string FixedNumber(double value, int digits) {
  char text[kMostDecimalText];
  return {text, WriteDecimals(WithoutNanSign(value), digits, text)};
}

std::string GeneralNumber(double value, int digits) {
  char text[kMostDecimalText];
  return {text,
          std::to_chars(text, text + sizeof(text), WithoutNanSign(value), std::chars_format::general, digits).ptr};
}

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
    const double power = kExactPowers[decimals];
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
