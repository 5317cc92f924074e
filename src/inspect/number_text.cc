#include "inspect/number_text.h"

#include <charconv>
#include <cmath>

namespace millrace {
namespace {

template <class Number>
void AppendDigits(Number number, std::string* out) {
  char digits[48];
  out->append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

template <class Real>
void AppendReal(Real number, std::string* out) {
  if (std::isnan(number)) {
    out->append("NaN");
  } else if (std::isinf(number)) {
    out->append(number > 0 ? "Infinity" : "-Infinity");
  } else {
    AppendDigits(number, out);
  }
}

}  // namespace

void AppendNumber(uint64_t number, std::string* out) { AppendDigits(number, out); }
void AppendNumber(float number, std::string* out) { AppendReal(number, out); }
void AppendNumber(double number, std::string* out) { AppendReal(number, out); }

}  // namespace millrace
