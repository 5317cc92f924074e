#include "config/diagnostics.h"

#include <algorithm>
#include <tuple>

#include "core/shortened.h"
#include "core/utf8.h"

namespace millrace {
namespace {

// More would scroll away the first ones, which usually cause the rest.
constexpr size_t kMostShown = 100;
constexpr size_t kLineWidth = 110;
// Of a message: what is longer holds a name or a value that nobody reads to its end.
constexpr size_t kLongestMessageLine = 2000;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Makes text safe for a terminal: bytes that are not printable UTF-8 become '?', tabs stay.
std::string Printable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
    const bool control = length == 1 ? byte(i) < 0x20 || byte(i) == 0x7F  //
                                     : length == 2 && byte(i) == 0xC2 && byte(i + 1) < 0xA0;
    if (length == 0 || (control && text[i] != '\t')) {
      out += '?';
      i += std::max<size_t>(length, 1);
      continue;
    }
    out += text.substr(i, length);
    i += length;
  }
  return out;
}

/// Each line of a message made safe; all but the first are indented.
std::string PrintableLines(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += (begin == 0 ? "" : "\n  ") + Printable(Shortened(text.substr(begin, end - begin), kLongestMessageLine));
    begin = end + 1;
  }
  return out;
}

std::string Count(int number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace

int Diagnostics::AddSource(std::string origin, std::string text) {
  Source source{std::move(origin), std::move(text), {0}};
  // Editors show no byte order mark, and columns count without it.
  if (source.text.starts_with("\xEF\xBB\xBF")) source.line_starts[0] = 3;
  for (size_t i = 0; i < source.text.size(); ++i) {
    if (source.text[i] == '\n') source.line_starts.push_back(i + 1);
  }
  sources_.push_back(std::move(source));
  return static_cast<int>(sources_.size()) - 1;
}

SourceSpan Diagnostics::Span(int source, size_t begin, size_t end) const {
  const Source& from = sources_[static_cast<size_t>(source)];
  begin = std::max(begin, from.line_starts[0]);
  const auto next = std::upper_bound(from.line_starts.begin(), from.line_starts.end(), begin);
  const int line = static_cast<int>(next - from.line_starts.begin());
  const size_t start = *(next - 1);
  const size_t line_end = start + Line(from, line).size();
  const size_t length = std::max<size_t>(1, std::min(end, line_end) - std::min(begin, line_end));
  return {source, line, static_cast<int>(begin - start) + 1, static_cast<int>(length)};
}

void Diagnostics::Add(Severity severity, SourceSpan where, std::string message, std::vector<std::string> notes) {
  const auto same = [&](const Entry& entry) {
    return entry.where.source == where.source && entry.where.line == where.line && entry.where.column == where.column &&
           entry.message == message;
  };
  // The same mistake may be met twice, soon after the first time: two checks of one field.
  const size_t recent = std::min<size_t>(entries_.size(), 32);
  if (std::any_of(entries_.end() - static_cast<ptrdiff_t>(recent), entries_.end(), same)) return;
  if (severity == Severity::kError) ++errors_;
  entries_.push_back({severity, where, std::move(message), std::move(notes)});
}

std::string_view Diagnostics::Line(const Source& source, int line) {
  const size_t start = source.line_starts[static_cast<size_t>(line) - 1];
  const size_t end = std::min(source.text.find('\n', start), source.text.size());
  std::string_view text(source.text.data() + start, end - start);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

void Diagnostics::RenderEntry(const Entry& entry, std::string* out) const {
  const SourceSpan& where = entry.where;
  if (where.source >= 0) {
    *out += Printable(sources_[static_cast<size_t>(where.source)].origin) + ":";
    if (where.line > 0) *out += std::to_string(where.line) + ":" + std::to_string(where.column) + ":";
    *out += " ";
  }
  *out += entry.severity == Severity::kError ? "error: " : "warning: ";
  *out += PrintableLines(entry.message) + "\n";
  for (const std::string& note : entry.notes) *out += "  " + Printable(note) + "\n";
  if (where.source < 0 || where.line == 0) return;

  const Source& source = sources_[static_cast<size_t>(where.source)];
  std::string_view line = Line(source, where.line);
  size_t begin = std::min(static_cast<size_t>(where.column) - 1, line.size());
  size_t length = static_cast<size_t>(where.length);
  const char* before = "";
  if (begin > kLineWidth * 2 / 3 && line.size() > kLineWidth) {
    size_t cut = begin - kLineWidth / 3;
    while (cut > 0 && IsContinuation(line[cut])) --cut;
    line.remove_prefix(cut);
    begin -= cut;
    before = "…";
  }
  const char* after = "";
  if (line.size() > kLineWidth) {
    size_t cut = kLineWidth;
    while (cut > 0 && IsContinuation(line[cut])) --cut;
    line = line.substr(0, cut);
    after = "…";
  }
  length = std::min(length, std::max<size_t>(1, line.size() - std::min(begin, line.size())));
  std::string number = std::to_string(where.line);
  if (number.size() < 4) number.insert(0, 4 - number.size(), ' ');
  *out += number + " | " + before + Printable(line) + after + "\n";
  *out += std::string(number.size(), ' ') + " | " + (*before != '\0' ? " " : "");
  for (size_t i = 0; i < begin; ++i) {
    if (!IsContinuation(line[i])) *out += line[i] == '\t' ? '\t' : ' ';
  }
  *out += '^';
  for (size_t i = begin + 1; i < begin + length; ++i) {
    if (i >= line.size() || !IsContinuation(line[i])) *out += '~';
  }
  *out += "\n";
}

Diagnostics Diagnostics::SourcesAlone() const {
  Diagnostics alone;
  alone.sources_ = sources_;
  return alone;
}

std::string Diagnostics::Render() const {
  std::vector<const Entry*> ordered;
  for (const Entry& entry : entries_) ordered.push_back(&entry);
  const auto key = [](const Entry* entry) {
    const SourceSpan& where = entry->where;
    // What belongs to no text comes last.
    return std::tuple(where.source < 0, where.source, where.line, where.column);
  };
  std::stable_sort(ordered.begin(), ordered.end(), [&](auto* a, auto* b) { return key(a) < key(b); });
  std::string out;
  for (size_t i = 0; i < std::min(ordered.size(), kMostShown); ++i) RenderEntry(*ordered[i], &out);
  if (ordered.size() > kMostShown) out += "… and " + std::to_string(ordered.size() - kMostShown) + " more\n";
  if (entries_.size() > 1) {
    const int warnings = static_cast<int>(entries_.size()) - errors_;
    if (errors_ > 0) out += Count(errors_, "error");
    if (errors_ > 0 && warnings > 0) out += ", ";
    if (warnings > 0) out += Count(warnings, "warning");
    out += "\n";
  }
  return out;
}

Status Diagnostics::ToStatus() const {
  if (errors_ == 0) return Status::Ok();
  std::string report = Render();
  report.pop_back();
  return input_errors_ == errors_ ? NotFound(std::move(report)) : InvalidConfig(std::move(report));
}

}  // namespace millrace
