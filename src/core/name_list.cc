#include "core/name_list.h"

#include <algorithm>

#include "core/edit_distance.h"

namespace millrace {

std::string JoinNames(std::span<const std::string_view> names) {
  std::string joined;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) joined += i + 1 == names.size() ? " and " : ", ";
    joined += names[i];
  }
  return joined;
}

std::string FirstNames(std::span<const std::string> names) {
  constexpr size_t kShown = 3;
  std::string shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) shown += (i == 0 ? "\"" : ", \"") + names[i] + "\"";
  return names.size() > kShown ? shown + " and " + std::to_string(names.size() - kShown) + " more" : shown;
}

std::string NoSuchName(std::string_view what, std::string_view name, const std::vector<std::string>& names,
                       std::string_view advice) {
  constexpr size_t kFewNames = 16;
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string message = "no " + std::string(what) + " \"" + std::string(name) + "\"";
  const std::string hint = DidYouMean(name, known);
  if (!hint.empty()) return message + hint;
  if (!known.empty() && known.size() <= kFewNames) {
    message += "; there " + std::string(known.size() == 1 ? "is " : "are ") + JoinNames(known);
  }
  if (!advice.empty()) message += "; " + std::string(advice);
  return message;
}

}  // namespace millrace
