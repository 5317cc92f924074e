#include "config/checker.h"

#include <algorithm>

#include "core/edit_distance.h"
#include "program/field_traits.h"

namespace millrace {
namespace {

constexpr size_t kFewNames = 16;

}  // namespace

std::string Checker::Field(std::string_view path) {
  const size_t dot = path.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? path : path.substr(dot + 1);
  return std::string(last.substr(0, last.find('[')));
}

void Checker::Ranges(const google::protobuf::Message& message) {
  for (const OutOfRange& wrong : FindOutOfRange(message)) Error(wrong.path, Field(wrong.path) + " " + wrong.what);
}

std::string JoinNames(const std::vector<std::string_view>& names) {
  std::string joined;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) joined += i + 1 == names.size() ? " and " : ", ";
    joined += names[i];
  }
  return joined;
}

void CheckKnown(Checker& check, const std::string& path, std::string_view what, const std::string& name,
                const std::vector<std::string>& names, const std::string& advice) {
  if (names.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string message = "no " + std::string(what) + " \"" + name + "\"";
  const std::string hint = DidYouMean(name, candidates);
  if (!hint.empty()) {
    message += hint;
  } else if (names.size() <= kFewNames) {
    message += "; there " + std::string(names.size() == 1 ? "is " : "are ") + JoinNames(candidates);
  }
  if (hint.empty() && !advice.empty()) message += "; " + advice;
  check.Error(path, message);
}

void CheckClassName(Checker& check, const std::string& path, std::string_view what, const std::string& name,
                    const std::vector<std::string>& names) {
  if (name.empty()) {
    check.Missing(path, "class_name", std::string(what) + " needs the class_name by which a plugin brings it");
  } else {
    CheckKnown(check, path + ".class_name", what, name, names, check.known().plugin_advice);
  }
}

}  // namespace millrace
