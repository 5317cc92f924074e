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

/// What threads did when, for a trace: the latest spans of each, until it is closed.
///
/// Thread-safe. Memory is bounded: kMostSpans of a thread.
class SpanLog {
 public:
  static constexpr size_t kMostSpans = size_t{1} << 15;
  struct Span {
    std::string name;
    std::string detail;             ///< a file's name; may be empty
    int64_t start_nanoseconds = 0;  ///< of the steady clock
    int64_t end_nanoseconds = 0;
  };

  /// Adds a span that ends now to a thread (or another line of the trace) of this name. One that began after Close is
  /// forgotten.
  void Add(const std::string& thread, std::string_view name, std::string_view detail, int64_t start_nanoseconds);
  /// What comes from now on is beyond the trace.
  void Close();
  /// By thread.
  std::map<std::string, std::vector<Span>> spans() const;

 private:
  mutable std::mutex mutex_;
  int64_t closed_at_ = INT64_MAX;
  std::map<std::string, std::deque<Span>> spans_;
};

}  // namespace millrace
