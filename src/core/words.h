#pragma once

#include <cstdio>
#include <string>

namespace millrace {

/// Says what somebody should know from wherever it is met, by any thread: whole lines, with their ends, to stderr or to
/// who listens.
void Say(const std::string& lines);

/// Whether a line of progress may stand there without its end, which kClearLine takes away.
bool ShowsProgress(std::FILE* out);
inline constexpr char kClearLine[] = "\r\033[K";

/// From now on `listener` gets what Say is given, on the thread that says it; for processes whose stderr is not ours.
/// Once, before anything is said.
void ListenToWords(void (*listener)(const std::string& lines));

}  // namespace millrace
