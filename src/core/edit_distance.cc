#include "core/edit_distance.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/harmless_text.h"
#include "core/lower_case.h"

namespace millrace {
namespace {

// Counts edits row by row and returns `limit` as soon as fewer are impossible.
int BoundedEditDistance(std::string_view a, std::string_view b, int limit) {
  const size_t width = b.size() + 1;
  std::vector<int> before_last(width);
  std::vector<int> last(width);
  std::vector<int> current(width);
  for (size_t j = 0; j < width; ++j) last[j] = static_cast<int>(j);
  int last_least = 0;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    int least = current[0];
    for (size_t j = 1; j < width; ++j) {
      const int replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      int cost = std::min({replace, last[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) cost = std::min(cost, before_last[j - 2] + 1);
      current[j] = cost;
      least = std::min(least, cost);
    }
    // A swap refers to the row before the previous one.
    if (least >= limit && last_least + 1 >= limit) return limit;
    last_least = least;
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return std::min(last[b.size()], limit);
}

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  return BoundedEditDistance(a, b, static_cast<int>(a.size() + b.size() + 1));
}

std::string_view NearestName(std::string_view name, std::span<const std::string_view> candidates) {
  // A longer name is not a typing error, and the quadratic distance would be too expensive.
  constexpr size_t kLongestName = 200;
  if (name.empty() || name.size() > kLongestName) return {};
  const std::string wanted = LowerCase(std::string(name));
  std::string_view best;
  int best_distance = static_cast<int>(std::max<size_t>(name.size(), 3) / 3) + 1;
  for (const std::string_view candidate : candidates) {
    // At least the difference of lengths is needed.
    const auto lengths_differ = std::abs(static_cast<int>(candidate.size()) - static_cast<int>(name.size()));
    if (candidate.size() > kLongestName || lengths_differ >= best_distance) continue;
    const int distance = BoundedEditDistance(wanted, LowerCase(std::string(candidate)), best_distance);
    if (distance < best_distance && distance < static_cast<int>(wanted.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty() || wanted.size() < 3) return best;
  for (const std::string_view candidate : candidates) {
    const std::string lower = LowerCase(std::string(candidate));
    if (lower.size() < 3) continue;
    if (lower.find(wanted) != std::string::npos || wanted.find(lower) != std::string::npos) return candidate;
  }
  return best;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string_view nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : "; did you mean \"" + Harmless(nearest) + "\"?";
}

}  // namespace millrace
