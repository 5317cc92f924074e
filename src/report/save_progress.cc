#include "report/save_progress.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kAtFirst{100};
constexpr std::chrono::milliseconds kTwiceASecond{500};
constexpr std::chrono::milliseconds kOnATerminal{1000};

ProgressLine::Options OptionsFor(std::FILE* terminal) {
  ProgressLine::Options options = ProgressLine::DetectOptions(terminal);
  options.plain_period_seconds = 0;  // the thread says how often
  return options;
}

}  // namespace

SaveProgress::SaveProgress(std::string what, uint64_t total, std::stop_token stop, std::FILE* terminal,
                           std::chrono::milliseconds now_and_then)
    : what_(std::move(what)),
      total_(total),
      stop_(std::move(stop)),
      now_and_then_(ProgressLine::DetectOptions(terminal).terminal ? std::min(now_and_then, kOnATerminal)
                                                                   : now_and_then),
      line_(OptionsFor(terminal)) {
  try {
    thread_ = std::jthread([this](const std::stop_token& gone) { Show(gone); });
  } catch (const std::exception&) {  // the save matters, not the line
  }
}

SaveProgress::~SaveProgress() {
  thread_ = {};
  line_.Clear();
}

void SaveProgress::Show(const std::stop_token& gone) {
  std::unique_lock lock(mutex_);
  auto last_shown = std::chrono::steady_clock::now();
  // Most saves are over before anybody has read a line.
  for (auto wait = kAtFirst; !gone.stop_requested(); wait = kTwiceASecond) {
    never_.wait_for(lock, gone, std::min(wait, now_and_then_), [] { return false; });
    const auto now = std::chrono::steady_clock::now();
    const bool is_waited_for = stop_.stop_requested();
    if (gone.stop_requested() || (!is_waited_for && now - last_shown < now_and_then_)) continue;
    last_shown = now;
    const uint64_t done = done_;
    line_.ShowText((is_waited_for ? "stopping: " : "") + what_ + ", " + std::to_string(done >> 20) + " of " +
                   std::to_string(std::max(done, total_.load()) >> 20) + " MB" +
                   (is_waited_for ? "; once more to end without it" : ""));
  }
}

}  // namespace millrace
