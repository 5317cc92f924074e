#include "core/span_log.h"

#include <utility>

#include "core/elapsed.h"

namespace millrace {

void SpanLog::Add(const std::string& thread, std::string_view name, std::string_view detail,
                  int64_t start_nanoseconds) {
  Span span{std::string(name), std::string(detail), start_nanoseconds, SteadyNanoseconds()};
  const std::lock_guard lock(mutex_);
  if (start_nanoseconds > closed_at_) return;
  std::deque<Span>& of_thread = spans_[thread];
  if (of_thread.size() == kMostSpans) of_thread.pop_front();
  of_thread.push_back(std::move(span));
}

void SpanLog::Close() {
  const std::lock_guard lock(mutex_);
  closed_at_ = SteadyNanoseconds();
}

std::map<std::string, std::vector<SpanLog::Span>> SpanLog::spans() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::vector<Span>> copied;
  for (const auto& [thread, spans] : spans_) copied[thread].assign(spans.begin(), spans.end());
  return copied;
}

}  // namespace millrace
