#include "core/words.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/terminal.h"

namespace millrace {
namespace {

std::atomic<void (*)(const std::string&)> g_listener{nullptr};

}  // namespace

void Say(const std::string& lines) {
  if (auto* const listener = g_listener.load(); listener != nullptr) return listener(lines);
  if (ShowsProgress(stderr)) std::fputs(kClearLine, Unguarded(stderr));
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

bool ShowsProgress(std::FILE* out) {
  const char* const term = std::getenv("TERM");
  return isatty(fileno(Unguarded(out))) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

void ListenToWords(void (*listener)(const std::string& lines)) { g_listener = listener; }

}  // namespace millrace
