#include "batch/consumed_ranges.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>

namespace millrace {

namespace {

constexpr size_t kFirstIntervals = 64;

}  // namespace

void ConsumedRanges::Add(const BatchSpan& span) {
  if (span.begin == span.end) return;
  CHECK_LT(span.begin, span.end) << "a span that runs backwards";
  std::vector<Interval>& intervals = sources_[span.source];
  if (intervals.capacity() == 0) intervals.reserve(kFirstIntervals);
  // The first interval that starts after the span; the previous one may touch or overlap it.
  auto next = std::upper_bound(intervals.begin(), intervals.end(), span.begin,
                               [](uint64_t position, const Interval& i) { return position < i.begin; });
  const bool has_previous = next != intervals.begin();
  if (has_previous) CHECK_LE(std::prev(next)->end, span.begin) << "position " << span.begin << " was trained twice";
  if (next != intervals.end()) CHECK_GE(next->begin, span.end) << "position " << next->begin << " was trained twice";
  const bool joins_previous = has_previous && std::prev(next)->end == span.begin;
  const bool joins_next = next != intervals.end() && next->begin == span.end;
  if (joins_previous && joins_next) {
    std::prev(next)->end = next->end;
    intervals.erase(next);
  } else if (joins_previous) {
    std::prev(next)->end = span.end;
  } else if (joins_next) {
    next->begin = span.begin;
  } else {
    intervals.insert(next, Interval{span.begin, span.end});
  }
}

void ConsumedRanges::Merge(const ConsumedRanges& other) {
  for (const auto& [source, intervals] : other.sources_) {
    if (intervals.empty()) continue;
    std::vector<Interval>& mine = sources_[source];
    if (mine.empty()) {
      // Exact capacity: spare capacity would be a kilobyte per file at each checkpoint.
      mine = intervals;
    } else {
      for (const Interval& i : intervals) Add({source, i.begin, i.end});
    }
  }
}

const std::vector<ConsumedRanges::Interval>& ConsumedRanges::Intervals(uint32_t source) const {
  static const std::vector<Interval> none;
  const auto it = sources_.find(source);
  return it == sources_.end() ? none : it->second;
}

bool ConsumedRanges::Contains(uint32_t source, uint64_t position) const {
  return NextUntrained(source, position) != position;
}

uint64_t ConsumedRanges::NextUntrained(uint32_t source, uint64_t position) const {
  const std::vector<Interval>& intervals = Intervals(source);
  const auto next = std::upper_bound(intervals.begin(), intervals.end(), position,
                                     [](uint64_t u, const Interval& i) { return u < i.begin; });
  if (next == intervals.begin()) return position;
  return std::max(position, std::prev(next)->end);
}

bool ConsumedRanges::empty() const {
  return std::all_of(sources_.begin(), sources_.end(), [](const auto& source) { return source.second.empty(); });
}

void ConsumedRanges::Clear() {
  for (auto& [source, intervals] : sources_) intervals.clear();
}

uint64_t ConsumedRanges::TotalPositions() const {
  uint64_t total = 0;
  for (const auto& [source, intervals] : sources_) {
    for (const Interval& i : intervals) total += i.end - i.begin;
  }
  return total;
}

bool ConsumedRanges::IsWithin(uint32_t sources, uint64_t positions) const {
  return std::all_of(sources_.begin(), sources_.end(), [&](const auto& source) {
    return source.second.empty() || (source.first < sources && source.second.back().end <= positions);
  });
}

std::string ConsumedRanges::ToText() const {
  std::string text;
  for (const auto& [source, intervals] : sources_) {
    if (intervals.empty()) continue;
    text += std::to_string(source) + ":";
    for (const Interval& i : intervals) text += " " + std::to_string(i.begin) + "-" + std::to_string(i.end);
    text += "\n";
  }
  return text;
}

Result<ConsumedRanges> ConsumedRanges::FromText(std::string_view text) {
  ConsumedRanges ranges;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end_of_line = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end_of_line);
    text.remove_prefix(std::min(end_of_line + 1, text.size()));
    const auto malformed = [&] {
      return BadData("ledger line " + std::to_string(line_number) +
                     ": expected \"SOURCE: BEGIN-END ...\" with rising " + "intervals, got \"" +
                     std::string(line.substr(0, 60)) + "\"");
    };
    const char* at = line.data();
    const char* const end = line.data() + line.size();
    const auto number = [&](auto* value, char after) {
      const auto [next, error] = std::from_chars(at, end, *value);
      if (error != std::errc() || (after != '\0' && (next == end || *next != after))) return false;
      at = after == '\0' ? next : next + 1;
      return true;
    };
    uint32_t source = 0;
    if (!number(&source, ':') || ranges.sources_.contains(source)) return malformed();
    std::vector<Interval>& intervals = ranges.sources_[source];
    while (at != end) {
      Interval interval;
      if (*at++ != ' ' || !number(&interval.begin, '-') || !number(&interval.end, '\0')) return malformed();
      if (interval.begin >= interval.end || (!intervals.empty() && intervals.back().end >= interval.begin)) {
        return malformed();
      }
      intervals.push_back(interval);
    }
    if (intervals.empty()) return malformed();
  }
  return ranges;
}

}  // namespace millrace
