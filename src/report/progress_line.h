#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stop_token>
#include <string>
#include <vector>

#include "job/run_hooks.h"

namespace millrace {

/// Shows how far a run is: on a terminal one line at the bottom that is rewritten, elsewhere a plain line now and then.
///
/// Whoever prints something else calls Clear before, so that it does not begin behind the line. Not thread-safe.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::FILE* out = stderr;
    bool terminal = false;  ///< rewrite one line; else print lines
    bool color = false;
    int width = 80;  ///< columns of the terminal
    double plain_period_seconds = 10;
  };
  /// Looks at `out`, COLUMNS, NO_COLOR and TERM.
  static Options DetectOptions(std::FILE* out);

  explicit ProgressLine(Options options) : options_(options), last_plain_(Clock::now()) {}

  /// `expected_examples` of a pass (0: unknown); `estimated` when it is a guess.
  void Show(const RunProgress& progress, int64_t expected_examples, bool estimated);
  /// Before there is something to train: how far the run is with something else.
  void ShowText(std::string text);
  /// Takes the line away (a terminal's), so that something else can be printed.
  void Clear();

  /// "epoch 1/3  42%  120000 examples  51000/s  ETA 0:42", cut to `width` columns.
  static std::string Text(const RunProgress& progress, int64_t expected_examples, bool estimated, int width);

 private:
  Options options_;
  bool shown_ = false;
  Clock::time_point last_plain_;
};

/// Guesses the lines of files from their sizes and the first lines of the first one; 0 when a file is compressed, has a
/// scheme, or cannot be read, and after a stop request. Reads 64 KiB.
int64_t EstimateLines(const std::vector<std::string>& files, const std::stop_token& stop = {});

}  // namespace millrace
