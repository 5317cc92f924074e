#include "core/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

#include "core/caught.h"
#include "core/numbers.h"
#include "core/stderr_tail.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPipeBytes = 1 << 20;
/// How long an ended command's output can stay open and silent before the user is informed.
constexpr std::chrono::seconds kHeldOpen{2};
constexpr int kStderrBytes = 1 << 16;  // between checks for a stop request: we write each line

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

/// A descriptor above stderr, so that setting up a child's 0, 1 and 2 does not overwrite it.
Result<FileDescriptor> AboveStdio(FileDescriptor fd) {
  if (fd.get() > STDERR_FILENO) return fd;
  FileDescriptor moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!moved.is_open()) return IoErrorFromErrno("cannot duplicate a file descriptor", errno);
  return moved;
}

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return IoErrorFromErrno("cannot make a pipe", errno);
  FileDescriptor read(ends[0]);
  FileDescriptor write(ends[1]);
  Pipe pipe;
  MR_ASSIGN(pipe.read, AboveStdio(std::move(read)));
  MR_ASSIGN(pipe.write, AboveStdio(std::move(write)));
  // Fewer context switches. Fails harmlessly if the user's quota of pipe pages is used up.
  (void)::fcntl(pipe.read.get(), F_SETPIPE_SZ, kPipeBytes);
  return pipe;
}

void SetNonBlocking(const FileDescriptor& fd) {
  (void)::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

/// Starts a program (looked up in PATH) in a process group of its own, with these descriptors, above 2 all of them, as
/// its standard input (below 0: /dev/null), output and error, `mark` in its environment, and signals as a shell leaves
/// them. Others that are open are closed on exec. kNotFound, kIo.
Result<pid_t> SpawnGroup(const std::vector<std::string>& argv, const std::string& mark, int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  if (in >= 0) {
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<char*> environment = EnvironmentWith(mark);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, words[0], &actions, &attributes, words.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return NotFound("no such program: " + argv[0]);
  if (error != 0) return IoErrorFromErrno("cannot start " + argv[0], error);
  return pid;
}

/// An eventfd that becomes readable at a stop request, for poll.
class WakeUp {
 public:
  WakeUp() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return fd_.get(); }
  void operator()() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t ignored = ::write(fd_.get(), &one, sizeof(one));
  }

 private:
  FileDescriptor fd_;
};

/// Wakes a poll on `wake` at a stop request.
struct CallWakeUp {
  const WakeUp* wake;
  void operator()() const { (*wake)(); }
};
using WakeOnStop = std::stop_callback<CallWakeUp>;

/// Writes a source to a command's stdin in its own thread.
///
/// An incomplete last line is held back until more arrives or the source ends successfully, so a command never sees a
/// line cut by a truncated archive.
class StdinWriter {
 public:
  StdinWriter(std::unique_ptr<ByteSource> source, FileDescriptor pipe)
      : source_(std::move(source)),
        pipe_(std::move(pipe)),
        thread_([this](const std::stop_token& stop) { Run(stop); }) {}

  /// The source's failure, once the command has ended.
  Status Join() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    return failure_;
  }

 private:
  void Run(const std::stop_token& stop) {
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);  // a command can end before reading everything
    SetNonBlocking(pipe_);
    const WakeOnStop on_stop(stop, CallWakeUp{&wake_});
    failure_ = Caught("the input of a command", [&] { return Copy(stop); });
    pipe_.Close();
  }

  Status Copy(const std::stop_token& stop) {
    std::vector<char> buffer(size_t{256} << 10);
    size_t filled = 0;
    for (;;) {
      Result<size_t> read = source_->Read(std::span(buffer).subspan(filled), stop);
      if (!read.ok()) {
        return read.status().code() == StatusCode::kCancelled ? Status::Ok() : std::move(read).status();
      }
      filled += *read;
      const bool at_end = *read == 0;
      size_t whole = filled;
      if (!at_end) {
        const void* last = ::memrchr(buffer.data(), '\n', filled);
        if (last != nullptr) {
          whole = static_cast<size_t>(static_cast<const char*>(last) - buffer.data()) + 1;
        } else if (filled < buffer.size()) {
          whole = 0;
        }
      }
      if (!WriteAll({buffer.data(), whole}, stop) || at_end) return Status::Ok();
      std::memmove(buffer.data(), buffer.data() + whole, filled - whole);
      filled -= whole;
    }
  }

  bool WriteAll(std::string_view bytes, const std::stop_token& stop) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(pipe_.get(), bytes.data(), bytes.size());
      if (n >= 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
      } else if (errno == EAGAIN) {
        std::array<pollfd, 2> polled{{{pipe_.get(), POLLOUT, 0}, {wake_.fd(), POLLIN, 0}}};
        (void)::poll(polled.data(), polled.size(), -1);
        if (stop.stop_requested()) return false;
      } else if (errno != EINTR) {
        return false;  // EPIPE: the command stopped reading, like `head`
      }
    }
    return true;
  }

  std::unique_ptr<ByteSource> source_;
  FileDescriptor pipe_;
  WakeUp wake_;
  Status failure_;  ///< read after joining the thread
  std::jthread thread_;
};

std::string SignalText(int signal) {
  const char* name = ::sigdescr_np(signal);
  return "killed by signal " + std::to_string(signal) + (name != nullptr ? std::string(" (") + name + ")" : "");
}

Status ExitFailure(const siginfo_t& info) {
  if (info.si_code != CLD_EXITED) return IoError("command " + SignalText(info.si_status));
  const int code = info.si_status;
  std::string what = "command exited with status " + std::to_string(code);
  if (code == 127) what += " (command not found)";
  if (code == 126) what += " (command cannot be executed)";
  // The shell's convention for a killed part of the command.
  if (code > 128 && ::sigdescr_np(code - 128) != nullptr) {
    what = "command " + SignalText(code - 128) + ", status " + std::to_string(code);
  }
  return code == 0 ? Status::Ok() : IoError(std::move(what));
}

class Subprocess final : public ByteSource {
 public:
  Subprocess(pid_t pid, const SubprocessOptions& options, ChildGuard& guard, FileDescriptor out, FileDescriptor err)
      : pid_(pid),
        pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        timeout_(options.silence_timeout),
        explains_failure_(options.explains_failure),
        activity_(options.activity),
        guard_(&guard),
        out_(std::move(out)),
        err_(std::move(err)),
        tail_(options.label, options.explains_failure) {
    SetNonBlocking(out_);
    SetNonBlocking(err_);
  }

  ~Subprocess() override {
    if (pid_ > 0) (void)Reap();
  }

  void StartWriter(std::unique_ptr<ByteSource> input, FileDescriptor pipe) {
    writer_.emplace(std::move(input), std::move(pipe));
  }

  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    if (!failure_.ok()) return failure_;
    if (pid_ < 0) return size_t{0};
    const Clock::time_point start = Clock::now();
    while (out_.is_open()) {
      const ssize_t n = ::read(out_.get(), out.data(), out.size());
      if (n > 0) {
        silent_since_.reset();
        return static_cast<size_t>(n);
      }
      if (n == 0) {
        out_.Close();
      } else if (errno == EAGAIN) {
        MR_TRY(Wait(start, stop));
      } else if (errno != EINTR) {
        return IoErrorFromErrno("cannot read from the command", errno);
      }
    }
    MR_TRY(AwaitExit(start, stop));
    return size_t{0};
  }

  bool WaitReadable(std::chrono::milliseconds most) override {
    const Clock::time_point end = Clock::now() + most;
    while (failure_.ok() && pid_ >= 0) {
      if (!out_.is_open() && !pidfd_.is_open()) return true;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      std::array<pollfd, 3> polled{
          {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {out_.is_open() ? -1 : pidfd_.get(), POLLIN, 0}}};
      (void)::poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(left.count(), 0)));
      if (polled[1].revents != 0) ReadStderr(kStderrBytes);
      if ((polled[0].revents & POLLIN) != 0 || polled[2].revents != 0) return true;
      // After closing its output a command can run for long, and only its exit status shows success.
      if (polled[0].revents != 0) out_.Close();
      TellOfHeldOutput();
      if (left.count() <= 0) return false;
    }
    return true;
  }

 private:
  /// Sleeps until there is work; reads stderr. Fails after a stop request or the silence timeout.
  Status Wait(Clock::time_point start, const std::stop_token& stop) {
    const WakeOnStop on_stop(stop, CallWakeUp{&wake_});
    if (stop.stop_requested()) return Cancelled("stopped while " + activity_);
    std::array<pollfd, 4> polled{{{out_.get(), POLLIN, 0},
                                  {err_.get(), POLLIN, 0},
                                  {wake_.fd(), POLLIN, 0},
                                  {out_.is_open() ? -1 : pidfd_.get(), POLLIN, 0}}};
    int wait_ms = -1;
    if (timeout_.count() > 0) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(start + timeout_ - Clock::now());
      if (left.count() <= 0) return TimedOut();
      wait_ms = static_cast<int>(std::min<int64_t>(left.count(), 3600 * 1000));
    }
    if (out_.is_open() && !is_held_told_ && (wait_ms < 0 || wait_ms > 1000)) wait_ms = 1000;
    if (!out_.is_open() && !pidfd_.is_open()) wait_ms = 5;  // without pidfd_open in the kernel: poll periodically
    (void)::poll(polled.data(), polled.size(), wait_ms);
    if (stop.stop_requested()) return Cancelled("stopped while " + activity_);
    if (polled[1].revents != 0) ReadStderr(kStderrBytes);
    TellOfHeldOutput();
    return Status::Ok();
  }

  /// A run can wait for a command that has ended, without visible reason. Grandchildren may still write to the pipe, so
  /// it is read to the end, or only keep it open, like a daemon that did not close it.
  void TellOfHeldOutput() {
    if (is_held_told_ || !out_.is_open()) return;
    const Clock::time_point now = Clock::now();
    if (now - silent_since_.value_or(now) >= kHeldOpen) {
      siginfo_t info{};
      const bool has_ended =
          ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
      // After a silence, there may be an unread end of file, perhaps with a last line.
      pollfd waits{out_.get(), POLLIN, 0};
      is_held_told_ = has_ended && ::poll(&waits, 1, 0) == 0;
      if (is_held_told_) {
        tail_.Append(
            "[the command has ended, but something that it started keeps its output open: waiting for that. A "
            "daemon is to be started with >/dev/null]\n");
      }
    }
    if (!silent_since_.has_value()) silent_since_ = now;
  }

  Status TimedOut() {
    const std::string seconds = GeneralNumber(std::chrono::duration<double>(timeout_).count());
    ReadStderr(kPipeBytes);
    tail_.Finish();
    (void)Reap();  // report the silence, regardless of the input
    failure_ = Unavailable(std::string("command wrote nothing for ") + seconds + " seconds and was killed" +
                           tail_.ForMessage());
    return failure_;
  }

  /// Reads up to `most` bytes from the pipe: an endlessly writing command would otherwise block stop requests and the
  /// timeout.
  void ReadStderr(int most) {
    std::array<char, 4096> buffer;
    for (int left = most; err_.is_open() && left > 0;) {
      const ssize_t n = ::read(err_.get(), buffer.data(), buffer.size());
      if (n > 0) {
        left -= static_cast<int>(n);
        tail_.Append({buffer.data(), static_cast<size_t>(n)});
      } else if (n == 0) {
        err_.Close();
      } else if (errno != EINTR) {
        return;
      }
    }
  }

  /// Ok if the command and its input succeeded.
  Status AwaitExit(Clock::time_point start, const std::stop_token& stop) {
    siginfo_t info{};
    for (;;) {
      // The process stays a zombie (WNOWAIT) until its group is killed, so its pid is not reused.
      info.si_pid = 0;
      if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        if (errno == EINTR) continue;
        failure_ = IoErrorFromErrno("cannot wait for the command", errno);
        // Another waiter has reaped it, and its pid may already be reused.
        guard_->Withdraw(pid_);
        pid_ = -1;
        return failure_;
      }
      if (info.si_pid != 0) break;
      MR_TRY(Wait(start, stop));
    }
    ReadStderr(kPipeBytes);
    tail_.Finish();
    const Status input_failure = Reap();
    if (!input_failure.ok()) {
      failure_ = input_failure;
    } else {
      failure_ = OwnFailure(info);
      const Status exit = ExitFailure(info);
      if (failure_.ok() && !exit.ok()) failure_ = Status(exit.code(), exit.message() + tail_.ForMessage());
      if (failure_.ok()) tail_.PassOn();
    }
    return failure_;
  }

  /// The failure reported by a program of ours; ok: none, or another one.
  Status OwnFailure(const siginfo_t& info) const {
    const std::string text = tail_.Text();
    if (!explains_failure_ || info.si_code != CLD_EXITED || text.empty()) return Status::Ok();
    if (info.si_status == kExitBadData) return BadData(text);
    return info.si_status == kExitInvalidConfig ? InvalidConfig(text) : Status::Ok();
  }

  /// Kills the rest of the command's group. Returns the failure of its input, if any.
  Status Reap() {
    ::kill(-pid_, SIGKILL);
    guard_->Withdraw(pid_);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return writer_ ? writer_->Join() : Status::Ok();
  }

  pid_t pid_;  ///< -1 after it was reaped
  FileDescriptor pidfd_;
  std::chrono::milliseconds timeout_;
  bool explains_failure_;
  std::string activity_;
  ChildGuard* guard_;
  FileDescriptor out_;
  FileDescriptor err_;
  StderrTail tail_;
  std::optional<Clock::time_point> silent_since_;  ///< nullopt: data was just read
  bool is_held_told_ = false;
  WakeUp wake_;
  Status failure_;
  std::optional<StdinWriter> writer_;
};

}  // namespace

std::vector<char*> EnvironmentWith(const std::string& entry) {
  std::vector<char*> all;
  for (char** at = environ; *at != nullptr; ++at) {
    // A trainer started by a command has its own guard, whose mark replaces ours.
    if (!std::string_view(*at).starts_with("MILLRACE_GUARD=")) all.push_back(*at);
  }
  all.push_back(const_cast<char*>(entry.c_str()));
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> ShellArgv(const std::string& command, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {"bash", "--norc", "-o", "pipefail", "-c", command, "bash"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

Result<std::unique_ptr<ByteSource>> StartSubprocess(SubprocessOptions options, ChildGuard& guard) {
  MR_ASSIGN(Pipe out, MakePipe());
  MR_ASSIGN(Pipe err, MakePipe());
  Pipe in;
  if (options.input != nullptr) {
    MR_ASSIGN(in, MakePipe());
  } else if (options.stdin_file.is_open()) {
    MR_ASSIGN(in.read, AboveStdio(std::move(options.stdin_file)));
  }
  MR_ASSIGN(const pid_t pid, SpawnGroup(options.argv, guard.mark(), in.read.get(), out.write.get(), err.write.get()));
  guard.Announce(pid);
  auto process = std::make_unique<Subprocess>(pid, options, guard, std::move(out.read), std::move(err.read));
  if (options.input != nullptr) process->StartWriter(std::move(options.input), std::move(in.write));
  return std::unique_ptr<ByteSource>(std::move(process));
}

}  // namespace millrace
