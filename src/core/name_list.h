#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// "a", "a and b", "a, b and c".
std::string JoinNames(std::span<const std::string_view> names);

/// The first three in quotes: "\"a\"", "\"a\", \"b\"", "\"a\", \"b\", \"c\" and 4 more".
std::string FirstNames(std::span<const std::string> names);

/// Returns `no WHAT "NAME"` with the nearest of `names`. Without a near one it lists the names if they are few, and
/// adds `advice` unless that is empty.
std::string NoSuchName(std::string_view what, std::string_view name, const std::vector<std::string>& names,
                       std::string_view advice = {});

}  // namespace millrace
