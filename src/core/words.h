#pragma once

#include <cstdio>
#include <string>

namespace millrace {

/// Shows a message to the user, from any thread: whole lines, with their ends, on stderr or to the listener.
void Say(const std::string& lines);

/// Whether a progress line without line end can be on the terminal; kClearLine removes it.
bool ShowsProgress(std::FILE* out);
inline constexpr char kClearLine[] = "\r\033[K";

/// Redirects later calls of Say to `listener`, on the calling thread; for processes whose stderr is not ours. Call it
/// once, before any Say.
void ListenToWords(void (*listener)(const std::string& lines));

}  // namespace millrace
