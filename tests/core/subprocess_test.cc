#include "core/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "process_tree.h"

namespace millrace {
namespace {

class SubprocessTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<ChildGuard>> made = ChildGuard::Create();
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    guard_ = std::move(made).value();
  }

  Result<std::unique_ptr<ByteSource>> Start(const std::string& command, SubprocessOptions options = {}) {
    options.argv = ShellArgv(command);
    options.label = "part-0";
    return StartSubprocess(std::move(options), *guard_);
  }

  static Result<std::string> ReadAll(ByteSource& source, const std::stop_token& stop = {}) {
    std::string text;
    std::vector<char> buffer(100000);
    for (;;) {
      MR_ASSIGN(const size_t n, source.Read(buffer, stop));
      if (n == 0) return text;
      text.append(buffer.data(), n);
    }
  }

  Result<std::string> Run(const std::string& command, SubprocessOptions options = {}) {
    MR_ASSIGN(const std::unique_ptr<ByteSource> process, Start(command, std::move(options)));
    return ReadAll(*process);
  }

  std::string FailureOf(const std::string& command) { return Run(command).status().message(); }

  std::unique_ptr<ChildGuard> guard_;
};

TEST_F(SubprocessTest, DeliversTheOutput) {
  EXPECT_EQ(Run("echo hello; echo world").value(), "hello\nworld\n");
  EXPECT_EQ(Run("head -c 5000000 /dev/zero").value(), std::string(5000000, '\0'));
  EXPECT_EQ(Run("true").value(), "");
}

TEST_F(SubprocessTest, ReadsItsFileAsStdin) {
  SubprocessOptions options;
  options.stdin_file = FileDescriptor(::open("/proc/self/comm", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(Run("tr a-z A-Z", std::move(options)).value(), "CORE_TEST\n");
  EXPECT_EQ(Run("cat").value(), "");  // /dev/null
}

TEST_F(SubprocessTest, FailuresSayHowItEnded) {
  EXPECT_EQ(FailureOf("exit 3"), "command exited with status 3");
  EXPECT_EQ(FailureOf("echo rows; exit 3"), "command exited with status 3");
  EXPECT_EQ(FailureOf("false | cat"), "command exited with status 1");
  EXPECT_EQ(FailureOf("kill -9 $$"), "command killed by signal 9 (Killed)");
  testing::internal::CaptureStderr();  // bash reports the kill
  EXPECT_TRUE(FailureOf("(kill -9 $BASHPID) | cat").starts_with("command killed by signal 9 (Killed), status 137\n"));
  testing::internal::GetCapturedStderr();
}

TEST_F(SubprocessTest, TheLastLinesOfStderrAreInTheFailure) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(FailureOf("echo one >&2; printf 'two\\nthree' >&2; exit 1"),
            "command exited with status 1\n  the command's last lines on stderr:\n    one\n    two\n    three");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "part-0: one\npart-0: two\npart-0: three\n");
}

TEST_F(SubprocessTest, AProgramOfOursExplainsItsFailure) {
  const auto run = [this](const std::string& command) {
    SubprocessOptions options;
    options.explains_failure = true;
    testing::internal::CaptureStderr();
    const Status status = Run(command, std::move(options)).status();
    return status.ToString() + "|" + testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(run("echo no column >&2; echo and no row >&2; exit 65"), "bad data: no column\nand no row|");
  EXPECT_EQ(run("echo no pyarrow >&2; exit 78"), "invalid configuration: no pyarrow|");
  // What it says is passed on behind a good end.
  EXPECT_EQ(run("echo hint >&2"), "ok|part-0: hint\n");
  EXPECT_EQ(run("echo trace >&2; exit 1"),
            "input/output error: command exited with status 1\n  the command's last lines on stderr:\n    trace|");
  EXPECT_EQ(run("exit 65"), "input/output error: command exited with status 65|");
}

TEST_F(SubprocessTest, ACommandThatIsNotThereIsNamed) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(FailureOf("no_such_command_here"),
            "command exited with status 127 (command not found)\n  the command's last lines on stderr:\n"
            "    bash: line 1: no_such_command_here: command not found");
  testing::internal::GetCapturedStderr();
}

TEST_F(SubprocessTest, MuchStderrDoesNotBlockTheCommand) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(
      Run("for i in $(seq 20000); do echo 'a line of some length that nobody needs' >&2; done; echo done").value(),
      "done\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr().size(),
            20000 * std::string("part-0: a line of some length that nobody needs\n").size());
}

TEST_F(SubprocessTest, StderrWithoutEndKeepsNeitherAStopNorTheTimeoutAway) {
  testing::internal::CaptureStderr();
  SubprocessOptions options;
  options.silence_timeout = std::chrono::milliseconds(50);
  EXPECT_TRUE(Run("exec yes spam >&2", std::move(options))
                  .status()
                  .message()
                  .starts_with("command wrote nothing for 0.05 seconds and was killed\n"));
  // Nor does one that the command leaves behind.
  EXPECT_EQ(Run("yes spam >&2 & echo done").value(), "done\n");

  std::stop_source stop;
  Result<std::unique_ptr<ByteSource>> process = Start("exec yes spam >&2");
  ASSERT_TRUE(process.ok());
  // The stop comes while the reading passes on what the command writes: our stderr, a file now, grows by that alone.
  const auto size_of_stderr = [] {
    struct stat file {};
    EXPECT_EQ(::fstat(STDERR_FILENO, &file), 0);
    return file.st_size;
  };
  std::jthread stopper([&stop, &size_of_stderr, before = size_of_stderr()] {
    while (size_of_stderr() <= before) std::this_thread::yield();
    stop.request_stop();
  });
  EXPECT_EQ(ReadAll(**process, stop.get_token()).status().code(), StatusCode::kCancelled);
  process = Cancelled("over");
  EXPECT_EQ(CountChildren(), 1);
  testing::internal::GetCapturedStderr();
}

TEST_F(SubprocessTest, ASilentCommandIsKilled) {
  SubprocessOptions options;
  options.silence_timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(Run("echo 1; exec sleep 1000", std::move(options)).status().message(),
            "command wrote nothing for 0.05 seconds and was killed");
  EXPECT_EQ(CountChildren(), 1);
}

TEST_F(SubprocessTest, AClosedStdoutIsWaitedForAndItsStatusCounts) {
  EXPECT_EQ(FailureOf("echo 1; exec >&-; read -r; exit 4"), "command exited with status 4");
  SubprocessOptions options;
  options.silence_timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(Run("exec >&-; exec sleep 1000", std::move(options)).status().message(),
            "command wrote nothing for 0.05 seconds and was killed");
}

TEST_F(SubprocessTest, KnowsWhetherAReadWouldWait) {
  using std::chrono::milliseconds;
  std::vector<char> buffer(100);
  const milliseconds forever = std::chrono::hours(1);
  for (const char* command : {"echo 1; exec sleep 1000", "echo 1; exec >&-; exec sleep 1000"}) {
    Result<std::unique_ptr<ByteSource>> process = Start(command);
    ASSERT_TRUE(process.ok());
    EXPECT_TRUE((*process)->WaitReadable(forever));
    ASSERT_EQ((*process)->Read(buffer, {}).value(), 2U);
    EXPECT_FALSE((*process)->WaitReadable(milliseconds(20))) << command;
  }
  testing::internal::CaptureStderr();
  Result<std::unique_ptr<ByteSource>> process = Start("echo 1; echo gone wrong >&2; exit 3");
  ASSERT_TRUE(process.ok());
  ASSERT_EQ((*process)->Read(buffer, {}).value(), 2U);
  EXPECT_TRUE((*process)->WaitReadable(forever));
  EXPECT_EQ((*process)->Read(buffer, {}).status().message(),
            "command exited with status 3\n  the command's last lines on stderr:\n    gone wrong");
  EXPECT_TRUE((*process)->WaitReadable(forever));
  testing::internal::GetCapturedStderr();
}

TEST_F(SubprocessTest, AStopRequestEndsTheWait) {
  std::stop_source stop;
  Result<std::unique_ptr<ByteSource>> process = Start("sleep 1000 | sleep 1000");
  ASSERT_TRUE(process.ok());
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(ReadAll(**process, stop.get_token()).status().code(), StatusCode::kCancelled);
}

TEST_F(SubprocessTest, TheWholeGroupGoesWithTheObject) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // every process of the group inherits the write end
  Result<std::unique_ptr<ByteSource>> process = Start("sleep 1000 & sleep 1000 | sleep 1000 & echo up; wait");
  ASSERT_TRUE(process.ok());
  std::vector<char> buffer(100);
  ASSERT_EQ((*process)->Read(buffer, {}).value(), 3U);
  ::close(ends[1]);
  process->reset();
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // returns once nobody holds the other end
  ::close(ends[0]);
  EXPECT_EQ(CountChildren(), 1);  // the guard
  guard_.reset();
  EXPECT_EQ(CountChildren(), 0);
}

TEST_F(SubprocessTest, ABackgroundProcessDoesNotOutliveItsCommand) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(Run("sleep 1000 >/dev/null 2>&1 & echo done").value(), "done\n");
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

TEST_F(SubprocessTest, ADaemonThatKeepsTheOutputOpenIsTold) {
  SubprocessOptions options;
  options.silence_timeout = std::chrono::seconds(4);
  const Result<std::string> text = Run("setsid sleep 1000 & echo done", std::move(options));
  EXPECT_EQ(text.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(text.status().message().find("the command has ended, but something that it started keeps its output open"),
            std::string::npos)
      << text.status().message();
}

TEST_F(SubprocessTest, ACommandThatIsSilentBeforeItEndsIsNotTakenForOneWithADaemon) {
  EXPECT_EQ(FailureOf("echo done; sleep 2.5; exit 7").find("keeps its output open"), std::string::npos);
}

TEST_F(SubprocessTest, ADaemonThatACommandStartedDoesNotOutliveTheGuard) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(Run("setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo done").value(), "done\n");
  ::close(ends[1]);
  guard_.reset();
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // returns once nobody holds the other end
  ::close(ends[0]);
}

TEST_F(SubprocessTest, AGuardRunsNoStartupFileOfTheUser) {
  // As where no shell is around: SHLVL is not set, and a bash that reads a socket takes itself for a remote login.
  const TempDir home = TempDir::Create("home").value();
  std::ofstream(home.path() + "/.bashrc") << ": > ~/was_run\n";
  const char* level = ::getenv("SHLVL");
  const std::string shell_level = level == nullptr ? "" : level;
  const std::string home_before = ::getenv("HOME") == nullptr ? "/" : ::getenv("HOME");
  ::setenv("HOME", home.path().c_str(), 1);
  ::unsetenv("SHLVL");
  guard_ = ChildGuard::Create().value();
  ::setenv("HOME", home_before.c_str(), 1);
  if (level != nullptr) ::setenv("SHLVL", shell_level.c_str(), 1);
  guard_.reset();  // waits for its end
  EXPECT_FALSE(std::filesystem::exists(home.path() + "/was_run"));
}

TEST_F(SubprocessTest, AGuardThatCannotReadAProcessDoesNotWaitForIt) {
  // Reading the environment of a process that is stuck in the kernel takes as long as that lasts.
  const TempDir stuck = TempDir::Create("stuck").value();
  std::ofstream(stuck.path() + "/grep") << "#!/bin/sh\nexec sleep 100000\n";
  std::filesystem::permissions(stuck.path() + "/grep", std::filesystem::perms::owner_all);
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", (stuck.path() + ":" + path).c_str(), 1);
  guard_ = ChildGuard::Create().value();
  ::setenv("PATH", path.c_str(), 1);
  const auto start = std::chrono::steady_clock::now();
  guard_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
}

TEST_F(SubprocessTest, AGuardLeavesThatOfACommandToKillItsOwn) {
  const std::string mark = guard_->mark();
  const size_t equals = mark.find('=');
  // As in a trainer that a command started.
  ::setenv(mark.substr(0, equals).c_str(), mark.substr(equals + 1).c_str(), 1);
  Result<std::unique_ptr<ChildGuard>> below = ChildGuard::Create();
  ::unsetenv(mark.substr(0, equals).c_str());
  ASSERT_TRUE(below.ok()) << below.status().ToString();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  SubprocessOptions options;
  options.argv = ShellArgv("setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo done");
  Result<std::unique_ptr<ByteSource>> process = StartSubprocess(std::move(options), **below);
  ASSERT_TRUE(process.ok()) << process.status().ToString();
  EXPECT_EQ(ReadAll(**process).value(), "done\n");
  process->reset();
  ::close(ends[1]);
  guard_.reset();
  below->reset();
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // hangs (and the test's time runs out) if the sleep is left
  ::close(ends[0]);
}

TEST_F(SubprocessTest, NothingOutlivesAParentThatIsKilled) {
  guard_.reset();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Result<std::unique_ptr<ChildGuard>> guard = ChildGuard::Create();
    SubprocessOptions options;
    options.argv = ShellArgv("trap '' HUP TERM PIPE; sleep 1000 & sleep 1000 | sleep 1000 & echo up; wait");
    Result<std::unique_ptr<ByteSource>> process = StartSubprocess(std::move(options), **guard);
    std::vector<char> buffer(100);
    if ((*process)->Read(buffer, {}).ok()) ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // hangs (and the test's time runs out) if a sleep is left
  ::close(ends[0]);
}

/// Delivers a text in small pieces, then fails if asked to.
class TextSource final : public ByteSource {
 public:
  TextSource(std::string text, Status end) : text_(std::move(text)), end_(std::move(end)) {}
  Result<size_t> Read(std::span<char> out, const std::stop_token&) override {
    if (at_ == text_.size() && !end_.ok()) return end_;
    const size_t n = std::min({out.size(), size_t{1000}, text_.size() - at_});
    text_.copy(out.data(), n, at_);
    at_ += n;
    return n;
  }
  bool WaitReadable(std::chrono::milliseconds) override { return true; }

 private:
  std::string text_;
  Status end_;
  size_t at_ = 0;
};

TEST_F(SubprocessTest, AThreadFeedsItsStdin) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i) + "\n";
  text += "no newline";
  SubprocessOptions options;
  options.input = std::make_unique<TextSource>(text, Status::Ok());
  EXPECT_EQ(Run("cat", std::move(options)).value(), text);
}

TEST_F(SubprocessTest, ACommandMayStopReading) {
  std::string text;
  for (int i = 0; i < 500000; ++i) text += std::to_string(i) + "\n";
  SubprocessOptions options;
  options.input = std::make_unique<TextSource>(text, Status::Ok());
  EXPECT_EQ(Run("head -n 2", std::move(options)).value(), "0\n1\n");
}

TEST_F(SubprocessTest, AFailureOfTheInputCountsAndNoBrokenLineIsSeen) {
  SubprocessOptions options;
  options.input = std::make_unique<TextSource>("1 2\n1 3\n1 ", BadData("gzip: unexpected end of file part-0"));
  Result<std::unique_ptr<ByteSource>> process = Start("awk '{print}'", std::move(options));
  ASSERT_TRUE(process.ok());
  std::vector<char> buffer(100);
  EXPECT_EQ((*process)->Read(buffer, {}).value(), 8U);
  EXPECT_EQ((*process)->Read(buffer, {}).status().message(), "gzip: unexpected end of file part-0");
}

TEST_F(SubprocessTest, ArgumentsAreNotShellText) {
  SubprocessOptions options;
  options.argv = ShellArgv("printf '%s\\n' \"$1\"", {"a\"; touch /tmp/owned; echo \"$(id)"});
  const auto process = StartSubprocess(std::move(options), *guard_);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(ReadAll(**process).value(), "a\"; touch /tmp/owned; echo \"$(id)\n");
}

}  // namespace
}  // namespace millrace
