#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/subprocess.h"

namespace millrace {
namespace {

// Reads "+ GROUP" and "- GROUP" until the other end closes, then kills the remaining groups and all processes with the
// mark in their environment. Repeats this, because a process may start another one meanwhile, but not for long, because
// the environment of a process stuck in the kernel is unreadable. Signals that a terminal or a scheduler sends to all
// must not end it before the process it watches.
constexpr char kScript[] =
    "trap '' HUP INT QUIT TERM PIPE; declare -A groups; "
    "while read -r sign group; do "
    "if [ \"$sign\" = + ]; then groups[$group]=1; else unset \"groups[$group]\"; fi; done; "
    "for group in \"${!groups[@]}\"; do kill -KILL -- \"-$group\"; done; "
    "for round in 1 2 3; do "
    "left=$(timeout -s KILL 2 grep -lszxF --line-buffered -- \"$1\" /proc/[0-9]*/environ); "
    "if [ -z \"$left\" ]; then break; fi; "
    "for file in $left; do pid=${file#/proc/}; kill -KILL \"${pid%/environ}\"; done; done";

void Say(int fd, char sign, pid_t group) {
  const std::string line = std::string(1, sign) + " " + std::to_string(group) + "\n";
  // A killed guard cannot be notified; commands still run and end normally.
  while (::send(fd, line.data(), line.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::unique_ptr<ChildGuard>> ChildGuard::Create() {
  static std::atomic<int> made{0};
  std::string mark = "MILLRACE_GUARD=" + std::to_string(::getpid()) + "-" + std::to_string(made.fetch_add(1)) + "-" +
                     std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
  int ends[2];
  // A socket instead of a pipe, because send can avoid SIGPIPE.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return IoErrorFromErrno("cannot make a socket pair", errno);
  }
  FileDescriptor ours(ends[0]);
  const FileDescriptor theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  // --norc: if SHLVL is not set (cron, systemd, a container), a bash with a socket as stdin assumes a remote login and
  // runs ~/.bashrc, which may take long, write output or never return.
  std::string words[] = {"bash", "--norc", "-c", kScript, "millrace-guard", mark};
  char* argv[std::size(words) + 1] = {};
  std::transform(std::begin(words), std::end(words), argv, [](std::string& word) { return word.data(); });
  // If a guard started us as a command, its mark is not inherited: it would kill our guard before ours kills its
  // commands.
  const std::string unmarked = "MILLRACE_GUARD=none";
  std::vector<char*> environment = EnvironmentWith(unmarked);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, "bash", &actions, &attributes, argv, environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return IoErrorFromErrno("cannot start bash, which runs pipe_command", error);
  return std::unique_ptr<ChildGuard>(new ChildGuard(std::move(mark), pid, std::move(ours)));
}

ChildGuard::~ChildGuard() {
  pipe_.Close();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildGuard::Announce(pid_t group) { Say(pipe_.get(), '+', group); }
void ChildGuard::Withdraw(pid_t group) { Say(pipe_.get(), '-', group); }

}  // namespace millrace
