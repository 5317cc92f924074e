#include "core/number_format.h"

#include <charconv>

#include "core/float_text.h"

namespace millrace {
namespace {

std::string Printed(double value, std::chars_format format, int digits) {
  char text[400];  // the largest double has 309 digits before its point
  const auto [end, error] = std::to_chars(text, text + sizeof(text), WithoutNanSign(value), format, digits);
  return {text, end};
}

}  // namespace

std::string FixedNumber(double value, int digits) { return Printed(value, std::chars_format::fixed, digits); }
std::string GeneralNumber(double value, int digits) { return Printed(value, std::chars_format::general, digits); }

}  // namespace millrace
