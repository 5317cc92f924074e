#include "plugin/fault_report.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include "core/exception_text.h"

namespace millrace {
namespace {

/// An opened plugin, with the names used by its user and by the system's loader.
struct OpenedFile {
  std::string path;
  std::string file;
};

/// The opened plugins, for handlers that can run in any thread while another one is added: visible entries never move.
/// Entries beyond the capacity are not searched.
class OpenedList {
 public:
  void Add(OpenedFile opened) {
    const size_t count = count_.load(std::memory_order_relaxed);
    if (count == room_.size()) return;
    room_[count] = std::move(opened);
    count_.store(count + 1, std::memory_order_release);
  }
  std::span<const OpenedFile> all() const { return {room_.data(), count_.load(std::memory_order_acquire)}; }

 private:
  std::array<OpenedFile, 256> room_;
  std::atomic<size_t> count_ = 0;
};

constexpr std::array kFaults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kMostCalls = 64;
constexpr int kExitCode = 2;
constexpr int kLongestReport = 2000;  ///< in milliseconds

/// The handlers installed before the first plugin.
struct Before {
  std::array<struct sigaction, kFaults.size()> faults{};
  std::terminate_handler terminate = nullptr;
};

/// For handlers at the end of the process, which can only access globals. Never destroyed, because they can run late.
OpenedList& OpenedFiles() {
  static auto* const files = new OpenedList;
  return *files;
}
Before& HandlersBefore() {
  static auto* const before = new Before;
  return *before;
}

/// The innermost call made by a plugin's code in this thread.
struct PluginCall {
  const OpenedFile* plugin = nullptr;
  size_t offset = 0;           ///< offset in its file
  const char* name = nullptr;  ///< linker name of the function; null if it has none
};

PluginCall FindCall() {
  std::array<void*, kMostCalls> calls{};
  const int depth = backtrace(calls.data(), kMostCalls);
  for (int i = 0; i < depth; ++i) {
    Dl_info from{};
    void* const address = calls[static_cast<size_t>(i)];
    if (dladdr(address, &from) == 0 || from.dli_fname == nullptr) continue;
    for (const OpenedFile& opened : OpenedFiles().all()) {
      if (opened.file != from.dli_fname) continue;
      const auto* const base = static_cast<const char*>(from.dli_fbase);
      return {&opened, static_cast<size_t>(static_cast<const char*>(address) - base), from.dli_sname};
    }
  }
  return {};
}

/// Ends the program, naming the plugin that made `call`, if any. The run was not over.
void NameWhoCalled(const char* call) {
  const PluginCall found = FindCall();
  if (found.plugin == nullptr) return;
  std::fflush(stdout);
  std::fprintf(stderr,
               "plugin \"%s\" called %s, which ends the program in the middle of its work; a plugin reports what is "
               "wrong to who calls it\n",
               found.plugin->path.c_str(), call);
  std::_Exit(kExitCode);
}

/// Runs within exit, regardless of `status`.
void NameWhoExits(int status, void*) {
  char call[32];
  std::snprintf(call, sizeof(call), "exit(%d)", status);
  NameWhoCalled(call);
}

void NameWhoExitsQuickly() { NameWhoCalled("quick_exit"); }

/// Runs within std::terminate, before the throwing stack is unwound.
void NameWhoTerminates() {
  const PluginCall call = FindCall();
  if (call.plugin != nullptr) {
    std::string what = "ended the program by std::terminate, as a std::thread does that nobody joined";
    try {
      if (std::current_exception() != nullptr) std::rethrow_exception(std::current_exception());
    } catch (...) {
      what = "threw where nobody can catch it, in a thread of its own, a destructor or a noexcept function: " +
             DescribeException();
    }
    std::fflush(stdout);
    std::fprintf(stderr, "plugin \"%s\" %s\n", call.plugin->path.c_str(), what.c_str());
    std::_Exit(kExitCode);
  }
  if (HandlersBefore().terminate != nullptr) HandlersBefore().terminate();
  std::abort();
}

const char* SignalName(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV, memory that is not there";
    case SIGBUS: return "SIGBUS, memory that is not there";
    case SIGFPE: return "SIGFPE, arithmetic";
    case SIGILL: return "SIGILL, no instruction";
    case SIGABRT: return "SIGABRT, abort";
    default: return "a signal";
  }
}

/// Writes the formatted text without allocating, because the heap may be damaged. Replaces control characters in symbol
/// names by "?".
void Show(std::array<char, 2048>& text, int length) {
  if (length <= 0) return;
  const size_t bytes = std::min(static_cast<size_t>(length), text.size() - 1);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; };
  std::replace_if(text.data(), text.data() + bytes - 1, is_control, '?');
  if (::write(STDERR_FILENO, text.data(), bytes) < 0) return;
}

/// Reports on standard error which plugin caused a fault, or which ones are loaded.
void ReportFault(int signal) {
  std::array<char, 2048> text{};
  const PluginCall call = FindCall();
  if (call.plugin != nullptr) {
    Show(text, std::snprintf(text.data(), text.size(),
                             "plugin \"%s\" crashed the program (%s) in %s; its place: addr2line -Cfe \"%s\" 0x%zx\n",
                             call.plugin->path.c_str(), SignalName(signal),
                             call.name == nullptr ? "a function without a name" : call.name, call.plugin->path.c_str(),
                             call.offset));
    return;
  }
  for (const OpenedFile& opened : OpenedFiles().all()) {
    Show(text, std::snprintf(text.data(), text.size(),
                             "the program crashed (%s) with plugin \"%s\" loaded, which may have damaged its memory\n",
                             SignalName(signal), opened.path.c_str()));
  }
}

/// Names the plugin that caused a fault, and then lets the fault take its usual course.
void NameWhoFaults(int signal, siginfo_t* info, void*) {
  static std::atomic<pid_t> reporter = 0;
  static std::atomic<bool> is_reported = false;
  const bool is_sent = info->si_code <= 0;
  pid_t first = 0;
  if (reporter.compare_exchange_strong(first, gettid())) {
    if (!is_sent || info->si_pid == getpid()) ReportFault(signal);
    is_reported = true;
  }
  // Other faulting threads must not end the process before the first report is complete. It may need a loader lock held
  // by this thread, so the wait is limited.
  const bool waits = first != 0 && first != gettid();
  constexpr timespec kMillisecond{0, 1'000'000};
  for (int i = 0; waits && !is_reported && i < kLongestReport; ++i) nanosleep(&kMillisecond, nullptr);
  for (size_t i = 0; i < kFaults.size(); ++i) {
    // A fault during the report, or again at the same instruction, is left to the previous handler.
    sigaction(kFaults[i], &HandlersBefore().faults[i], nullptr);
  }
  // A sent signal does not repeat by itself after this returns.
  if (is_sent) raise(signal);
}

void Watch() {
  Before& before = HandlersBefore();
  on_exit(NameWhoExits, nullptr);
  at_quick_exit(NameWhoExitsQuickly);
  before.terminate = std::set_terminate(NameWhoTerminates);
  FindCall();  // the first backtrace loads libraries, which a handler must not do
  struct sigaction action {};
  action.sa_sigaction = NameWhoFaults;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kFaults.size(); ++i) sigaction(kFaults[i], &action, &before.faults[i]);
}

}  // namespace

void ExpectEndFrom(const std::string& path, const std::string& file) {
  if (OpenedFiles().all().empty()) Watch();
  OpenedFiles().Add({path, file});
}

}  // namespace millrace
