#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// A string from outside, such as a plugin or a downloaded model, made safe for a terminal: control characters, byte
/// order marks and invalid UTF-8 become "\x1b", except for characters in `keep`.
std::string Harmless(std::string_view text, std::string_view keep = "");

/// The same for a failure's message; line breaks are kept.
Status Harmless(const Status& failure);

}  // namespace millrace
