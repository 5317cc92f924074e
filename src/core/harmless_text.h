#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// A text that nobody here has written, of a plugin or of a model from elsewhere, as a terminal may show it: control
/// characters, byte order marks, and bytes that are no UTF-8, become "\x1b". Those that `keep` holds stay.
std::string Harmless(std::string_view text, std::string_view keep = "");

/// The same of a failure's message, whose lines stay lines.
Status Harmless(const Status& failure);

}  // namespace millrace
