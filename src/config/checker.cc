#include "config/checker.h"

#include <algorithm>
#include <utility>

#include "core/name_list.h"
#include "program/field_traits.h"

namespace millrace {

std::string Checker::Field(std::string_view path) {
  const size_t dot = path.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? path : path.substr(dot + 1);
  return std::string(last.substr(0, last.find('[')));
}

void Checker::Ranges(const google::protobuf::Message& message) {
  for (const OutOfRange& wrong : FindOutOfRange(message)) Error(wrong.path, Field(wrong.path) + " " + wrong.what);
}

bool HasErrorsWithin(const Diagnostics& diagnostics, const FieldPositions& positions, const std::string& field) {
  const auto is_within = [&](const Diagnostics::Entry& entry) {
    const SourceSpan& where = entry.where;
    if (entry.severity != Diagnostics::Severity::kError || where.line == 0) return false;
    if (diagnostics.origin(where.source).starts_with("--set #")) {
      const std::string& text = diagnostics.text(where.source);
      return text.substr(0, text.find_first_of(".=+")) == field;
    }
    const SourceSpan begin = positions.Find(field);
    const SourceSpan end = positions.Find(field + ".}");
    const std::pair place(where.line, where.column);
    return where.source == begin.source && place >= std::pair(begin.line, begin.column) &&
           place <= std::pair(end.line, end.column);
  };
  return std::any_of(diagnostics.entries().begin(), diagnostics.entries().end(), is_within);
}

void Checker::Add(const std::vector<ConfigMistake>& mistakes) {
  const std::set<std::string, std::less<>> said = said_;
  // What stands there with a mistake is not missing, and sizes that are right do not fit others that are wrong.
  const bool had_errors = has_errors();
  const bool are_sizes_sound = !HasErrorsIn("data_desc") && !HasErrorsIn("model");
  for (const ConfigMistake& mistake : mistakes) {
    using Kind = ConfigMistake::Kind;
    if (said.contains(mistake.path)) continue;
    if (mistake.kind == Kind::kMissing && had_errors && positions_.Has(mistake.path)) continue;
    if (mistake.kind == Kind::kShape && !are_sizes_sound) continue;
    const std::string& earlier = mistake.earlier;
    const std::string where = earlier.empty() ? "" : ", on line " + std::to_string(Line(earlier));
    Error(mistake.path, mistake.message + where);
  }
}

void CheckKnown(Checker& check, const std::string& path, std::string_view what, const std::string& name,
                const std::vector<std::string>& names, const std::string& advice) {
  if (names.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  check.Error(path, NoSuchName(what, name, names, advice));
}

}  // namespace millrace
