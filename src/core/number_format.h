#pragma once

#include <string>

namespace millrace {

/// `value` with `digits` decimals, like printf's %.*f in the C locale, independent of the process's locale: a Python
/// program that imports us may use "0,5" for 0.5. NaN has no sign.
std::string FixedNumber(double value, int digits);

/// `value` with `digits` significant digits, like printf's %.*g in the C locale.
std::string GeneralNumber(double value, int digits = 6);

}  // namespace millrace
