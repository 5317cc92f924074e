#include "core/child_program.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace millrace {

Result<ChildProgram> ChildProgram::Start(const std::vector<std::string>& argv, const std::string& output,
                                         ChildGuard& guard) {
  const FileDescriptor file(::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file.is_open()) return IoErrorFromErrno("cannot open \"" + output + "\"", errno);
  MR_ASSIGN(const pid_t pid, SpawnGroup(argv, guard.mark(), -1, file.get(), file.get()));
  guard.Announce(pid);
  return ChildProgram(pid, &guard);
}

ChildProgram::ChildProgram(ChildProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), guard_(other.guard_), exit_code_(other.exit_code_) {}

ChildProgram::~ChildProgram() {
  if (pid_ > 0 && !ExitCode().has_value()) Reap();
}

std::optional<int> ChildProgram::ExitCode() {
  if (pid_ < 0) return exit_code_;
  siginfo_t info{};
  // It stays a zombie until its group is killed, so its pid is not reused.
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno == EINTR) continue;
    // Another waiter has reaped it, and its pid may already be reused.
    guard_->Withdraw(pid_);
    pid_ = -1;
    exit_code_ = kNotKnown;
    return exit_code_;
  }
  if (info.si_pid == 0) return {};
  constexpr int kOfSignal = 128;
  exit_code_ = info.si_code == CLD_EXITED ? info.si_status : kOfSignal + info.si_status;
  Reap();
  return exit_code_;
}

void ChildProgram::Signal(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

void ChildProgram::Reap() {
  ::kill(-pid_, SIGKILL);
  guard_->Withdraw(pid_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace millrace
