#pragma once

#include <span>
#include <string>
#include <string_view>

namespace millrace {

/// Counts the insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
int EditDistance(std::string_view a, std::string_view b);

/// Finds the candidate that a misspelled name probably means: the nearest one, ignoring case, within a third of the
/// name's length; otherwise the first that contains the name or is contained in it; empty if there is none.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> candidates);

/// Returns `; did you mean "NAME"?` for the nearest candidate; empty if there is none.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace millrace
