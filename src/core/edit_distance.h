#pragma once

#include <span>
#include <string>
#include <string_view>

namespace millrace {

/// Counts the insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
int EditDistance(std::string_view a, std::string_view b);

/// Finds the candidate that a misspelt name probably meant: the nearest one (case aside) within a third of the name's
/// length, or else the first of which the name is a part or that is a part of it; empty when there is none.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> candidates);

/// Returns `; did you mean "NAME"?` for the nearest candidate, or nothing.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace millrace
