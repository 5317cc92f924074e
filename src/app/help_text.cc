#include "app/help_text.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/numbers.h"
#include "core/version.h"

namespace millrace {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 6;

/// One flag as --help shows it.
struct Row {
  std::string usage;
  std::string help;
};

/// Splits "FILE: the job" into "FILE" and "the job". Without a value name, the first part is empty.
std::pair<std::string, std::string> SplitValueName(const std::string& help) {
  size_t end = 0;
  while (end < help.size() && ((help[end] >= 'A' && help[end] <= 'Z') || help[end] == '_')) ++end;
  if (end < 1 || help.compare(end, 2, ": ") != 0) return {"", help};
  return {help.substr(0, end), help.substr(end + 2)};
}

std::string ValueName(const std::string& type) {
  if (type == "string") return "TEXT";
  return type == "double" ? "NUMBER" : "N";
}

/// The default as in the source, because gflags prints 1e-6 with 17 digits.
std::string DefaultOf(const gflags::CommandLineFlagInfo& flag) {
  if (flag.type != "double") return flag.default_value;
  double value = 0;
  (void)ParseDouble(flag.default_value, &value);
  return ExactNumber(value);
}

Row FlagRow(std::string_view name) {
  gflags::CommandLineFlagInfo flag;
  CHECK(gflags::GetCommandLineFlagInfo(std::string(name).c_str(), &flag)) << "--help lists an unknown flag: " << name;
  auto [value_name, help] = SplitValueName(flag.description);
  if (flag.type == "bool") {
    if (flag.default_value == "true") return {"--no" + flag.name, help + " (default: on)"};
    return {"--" + flag.name, help};
  }
  if (!flag.default_value.empty()) help += " (default: " + DefaultOf(flag) + ")";
  return {"--" + flag.name + "=" + (value_name.empty() ? ValueName(flag.type) : value_name), help};
}

void AppendWrapped(const std::string& text, std::string* out) {
  size_t column = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    start = end + 1;
    if (column == 0) {
      *out += std::string(kIndent, ' ') + word;
      column = kIndent + word.size();
    } else if (column + 1 + word.size() > kWidth) {
      *out += "\n" + std::string(kIndent, ' ') + word;
      column = kIndent + word.size();
    } else {
      *out += " " + word;
      column += 1 + word.size();
    }
  }
  *out += "\n";
}

void AppendGroup(std::string_view title, const std::vector<Row>& rows, std::string* out) {
  *out += "\n" + std::string(title) + ":\n";
  for (const Row& row : rows) {
    *out += "  " + row.usage + "\n";
    AppendWrapped(row.help, out);
  }
}

}  // namespace

std::string HelpText(const ProgramInfo& program) {
  std::string out = std::string(program.name) + ": " + std::string(program.summary) +
                    "\n\nusage: " + std::string(program.usage) + "\n";
  const auto row = [](const ProgramInfo::Repeated& repeated) {
    return Row{"--" + std::string(repeated.flag) + "=" + std::string(repeated.value_name),
               std::string(repeated.help) + " (repeatable)"};
  };
  // Repeatable flags outside every group are listed in the first group.
  std::vector<Row> unnamed;
  for (const auto& repeated : program.repeated) {
    const auto names = [&](const FlagGroup& group) {
      return std::find(group.flags.begin(), group.flags.end(), repeated.flag) != group.flags.end();
    };
    if (std::none_of(program.groups.begin(), program.groups.end(), names)) unnamed.push_back(row(repeated));
  }
  for (const FlagGroup& group : program.groups) {
    std::vector<Row> rows;
    for (const std::string_view flag : group.flags) {
      const auto repeated = std::find_if(program.repeated.begin(), program.repeated.end(),
                                         [&](const auto& one) { return one.flag == flag; });
      rows.push_back(repeated == program.repeated.end() ? FlagRow(flag) : row(*repeated));
    }
    rows.insert(rows.end(), unnamed.begin(), unnamed.end());
    unnamed.clear();
    AppendGroup(group.title, rows, &out);
  }
  AppendGroup("General",
              {{"--flagfile=FILE", "read flags from a file, one per line; # starts a comment"},
               {"--help", "show this help"},
               {"--version", "show the version and the compiled-in features"}},
              &out);
  if (!program.examples.empty()) out += "\nexamples:\n";
  for (std::string_view rest = program.examples; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    out += "  " + std::string(line) + "\n";
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return out;
}

std::string VersionText(std::string_view program) {
  std::string out = std::string(program) + " " + MillraceVersion() + " (Millrace)\n";
  out += "  compiler     " MILLRACE_COMPILER "\n";
  out += "  build        " MILLRACE_BUILD_TYPE "\n";
  out += "  compiled in  " MILLRACE_FEATURES "\n";
  return out;
}

}  // namespace millrace
