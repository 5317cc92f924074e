#include "core/terminal.h"

#include <atomic>
#include <iostream>
#include <mutex>
#include <streambuf>
#include <string_view>

#include "core/harmless_text.h"

namespace millrace {
namespace {

constexpr std::string_view kKept = "\n\t";

std::atomic<std::FILE*> g_raw{nullptr};  ///< standard error before guarding

/// Start of the last character if it is incomplete: long messages are written in pieces.
size_t EndOfWholeCharacters(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80 || byte > 0xF4) break;
    if (byte < 0xC0) continue;
    const size_t needed = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return needed > back ? text.size() - back : text.size();
  }
  return text.size();
}

ssize_t WriteHarmless(void* /*cookie*/, const char* bytes, size_t size) {
  static auto* const mutex = new std::mutex;  // never destroyed: threads may print during static destruction
  static auto* const rest = new std::string;
  const std::lock_guard lock(*mutex);
  std::string text = *rest;
  text.append(bytes, size);
  const size_t end = EndOfWholeCharacters(text);
  rest->assign(text, end);
  text.resize(end);
  const std::string shown = Harmless(text, kKept);
  std::FILE* const raw = g_raw.load();
  if (std::fwrite(shown.data(), 1, shown.size(), raw) != shown.size()) return 0;
  return static_cast<ssize_t>(size);
}

/// std::cerr keeps the initial stderr stream.
class ToStandardError final : public std::streambuf {
 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return static_cast<std::streamsize>(std::fwrite(text, 1, static_cast<size_t>(size), stderr));
  }
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    return std::fputc(c, stderr) == EOF ? traits_type::eof() : c;
  }
};

}  // namespace

void GuardStandardError() {
  if (g_raw.load() != nullptr) return;
  cookie_io_functions_t functions{};
  functions.write = WriteHarmless;
  std::FILE* const guarded = ::fopencookie(nullptr, "w", functions);
  if (guarded == nullptr) return;  // no memory: continue unguarded
  std::setvbuf(guarded, nullptr, _IONBF, 0);
  g_raw = stderr;
  stderr = guarded;
  std::cerr.rdbuf(new ToStandardError);
}

std::FILE* Unguarded(std::FILE* stream) {
  std::FILE* const raw = g_raw.load();
  return stream == stderr && raw != nullptr ? raw : stream;
}

bool PrintOut(const std::string& text) {
  const std::string shown = Harmless(text, kKept);
  return std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size();
}

}  // namespace millrace
