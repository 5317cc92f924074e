#include "report/progress_line.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/harmless_text.h"
#include "core/terminal.h"
#include "core/words.h"

namespace millrace {
namespace {

std::string Duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", static_cast<long long>(whole / 3600),
                  static_cast<long long>(whole / 60 % 60), static_cast<long long>(whole % 60));
  } else {
    std::snprintf(text, sizeof(text), "%lld:%02lld", static_cast<long long>(whole / 60),
                  static_cast<long long>(whole % 60));
  }
  return text;
}

}  // namespace

ProgressLine::Options ProgressLine::DetectOptions(std::FILE* out) {
  Options options;
  options.out = Unguarded(out);
  const int fd = fileno(options.out);
  options.terminal = ShowsProgress(out);
  const char* no_color = std::getenv("NO_COLOR");
  options.color = options.terminal && (no_color == nullptr || *no_color == '\0');
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.width = size.ws_col;
  } else if (const char* columns = std::getenv("COLUMNS"); columns != nullptr && std::atoi(columns) > 0) {
    options.width = std::atoi(columns);
  }
  return options;
}

void ProgressLine::Show(const RunProgress& progress, int64_t expected_examples, bool estimated) {
  ShowText(Text(progress, expected_examples, estimated, options_.terminal ? options_.width - 1 : 200));
}

void ProgressLine::ShowText(std::string text) {
  text = Harmless(text);
  if (options_.terminal) {
    text.resize(std::min(text.size(), static_cast<size_t>(std::max(options_.width - 1, 0))));
    std::fprintf(options_.out, options_.color ? "\r\033[K\033[36m%s\033[0m" : "\r\033[K%s", text.c_str());
    std::fflush(options_.out);
    shown_ = true;
    return;
  }
  const auto now = Clock::now();
  if (std::chrono::duration<double>(now - last_plain_).count() < options_.plain_period_seconds) return;
  last_plain_ = now;
  std::fprintf(options_.out, "%s\n", text.c_str());
  std::fflush(options_.out);
}

void ProgressLine::Clear() {
  if (!shown_) return;
  std::fputs(kClearLine, options_.out);
  std::fflush(options_.out);
  shown_ = false;
}

std::string ProgressLine::Text(const RunProgress& progress, int64_t expected_examples, bool estimated, int width) {
  std::string text = "epoch " + std::to_string(progress.epoch + 1) + "/" + std::to_string(progress.epochs);
  const double done = static_cast<double>(progress.pass_examples);
  const double rate = progress.pass_seconds > 0 ? done / progress.pass_seconds : 0;
  const double expected = static_cast<double>(expected_examples);
  const char* about = estimated ? "~" : "";
  if (expected > 0) {
    const int percent = std::min(estimated ? 99 : 100, static_cast<int>(100 * done / expected));
    text += "  " + std::string(about) + std::to_string(percent) + "%";
  }
  text += "  " + std::to_string(progress.pass_examples) + " examples";
  text += "  " + std::to_string(std::llround(rate)) + "/s";
  if (expected > 0 && rate > 0) {
    const double later_epochs = static_cast<double>(progress.epochs - progress.epoch - 1) * expected;
    text += "  ETA " + std::string(about) + Duration((std::max(0.0, expected - done) + later_epochs) / rate);
  }
  if (progress.odd_labels > 0) text += "  odd labels " + std::to_string(progress.odd_labels);
  if (width > 0 && text.size() > static_cast<size_t>(width)) text.resize(static_cast<size_t>(width));
  return text;
}

int64_t EstimateLines(const std::vector<std::string>& files, const std::stop_token& stop) {
  double bytes = 0;
  double bytes_per_line = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (error || stop.stop_requested()) return 0;
    bytes += static_cast<double>(size);
    if (bytes_per_line > 0 || size == 0) continue;
    std::string start(size_t{64} << 10, '\0');
    std::ifstream in(file, std::ios::binary);
    in.read(start.data(), static_cast<std::streamsize>(start.size()));
    start.resize(static_cast<size_t>(std::max<std::streamsize>(0, in.gcount())));
    const bool compressed = start.starts_with("\x1f\x8b") || start.starts_with("\x28\xb5\x2f\xfd");
    const size_t last = start.rfind('\n');
    if (compressed || last == std::string::npos) return 0;
    const auto lines = std::count(start.begin(), start.begin() + static_cast<std::ptrdiff_t>(last) + 1, '\n');
    bytes_per_line = static_cast<double>(last + 1) / static_cast<double>(lines);
  }
  return bytes_per_line > 0 ? std::llround(bytes / bytes_per_line) : 0;
}

}  // namespace millrace
