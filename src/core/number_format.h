#pragma once

#include <string>

namespace millrace {

/// `value` with so many digits behind a point, as printf's %.*f writes it in the C locale, whatever locale the process
/// has: a Python that imports us may have one in which 0.5 is "0,5". A NaN is shown without its sign.
std::string FixedNumber(double value, int digits);

/// `value` in so many digits, as printf's %.*g writes it in the C locale.
std::string GeneralNumber(double value, int digits = 6);

}  // namespace millrace
