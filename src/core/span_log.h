#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Records timed spans of threads for a trace: the latest of each thread, until closed.
///
/// Thread-safe. Memory is bounded: kMostSpans per thread.
class SpanLog {
 public:
  static constexpr size_t kMostSpans = size_t{1} << 15;
  struct Span {
    std::string name;
    std::string detail;             ///< a file name; can be empty
    int64_t start_nanoseconds = 0;  ///< steady clock
    int64_t end_nanoseconds = 0;
  };

  /// Adds a span that ends now to the thread (or another row of the trace) with this name. Ignores spans that started
  /// after Close.
  void Add(const std::string& thread, std::string_view name, std::string_view detail, int64_t start_nanoseconds);
  /// Ends the trace; later spans are ignored.
  void Close();
  /// Spans by thread.
  std::map<std::string, std::vector<Span>> spans() const;

 private:
  mutable std::mutex mutex_;
  int64_t closed_at_ = INT64_MAX;
  std::map<std::string, std::deque<Span>> spans_;
};

}  // namespace millrace
