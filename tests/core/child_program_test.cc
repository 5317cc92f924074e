#include "core/child_program.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "core/file.h"

namespace millrace {
namespace {

class ChildProgramTest : public testing::Test {
 protected:
  ChildProgram Start(const std::string& command) {
    return ChildProgram::Start(ShellArgv(command), folder_.path() + "/log", *guard_).value();
  }
  static int Await(ChildProgram& program) {
    for (;;) {
      if (const std::optional<int> code = program.ExitCode(); code.has_value()) return *code;
      std::this_thread::yield();
    }
  }
  std::string Log() const { return ReadFile(folder_.path() + "/log").value(); }

  TempDir folder_ = TempDir::Create("child_program").value();
  std::unique_ptr<ChildGuard> guard_ = ChildGuard::Create().value();
};

TEST_F(ChildProgramTest, WritesToItsFileAndEndsWithItsCode) {
  ChildProgram program = Start("cat; echo said; echo complained >&2; exit 7");
  EXPECT_EQ(Await(program), 7);
  EXPECT_EQ(program.ExitCode(), 7) << "as often as it is asked";
  EXPECT_EQ(Log(), "said\ncomplained\n");
  ChildProgram next = Start("echo more");
  EXPECT_EQ(Await(next), 0);
  EXPECT_EQ(Log(), "said\ncomplained\nmore\n") << "behind what is there";
}

TEST_F(ChildProgramTest, ASignalReachesTheProgramAlone) {
  ChildProgram program = Start("trap 'echo stopped; exit 130' TERM; echo ready; while :; do sleep 0.01; done");
  while (Log() != "ready\n") std::this_thread::yield();
  program.Signal(SIGTERM);
  EXPECT_EQ(Await(program), 130);
  EXPECT_EQ(Log(), "ready\nstopped\n");
  program.Signal(SIGTERM);  // nobody is there
  ChildProgram killed = Start("kill -KILL $$");
  EXPECT_EQ(Await(killed), 128 + SIGKILL);
}

TEST_F(ChildProgramTest, GoesWithTheObject) {
  pid_t group = -1;
  {
    ChildProgram program = Start("echo $$; exec sleep 1000");
    while (Log().empty() || Log().back() != '\n') std::this_thread::yield();
    group = std::stoi(Log());
    EXPECT_EQ(kill(group, 0), 0);
    const ChildProgram moved = std::move(program);
    EXPECT_EQ(kill(group, 0), 0);
  }
  EXPECT_NE(kill(group, 0), 0);
}

TEST_F(ChildProgramTest, OneThatNobodyCanWaitForDoesNotRunForEver) {
  auto* const handler = std::signal(SIGCHLD, SIG_IGN);
  ChildProgram program = Start("exit 7");
  EXPECT_EQ(Await(program), ChildProgram::kNotKnown);
  EXPECT_EQ(program.ExitCode(), ChildProgram::kNotKnown);
  program.Signal(SIGTERM);  // its number may be another's
  { const ChildProgram running = Start("exec sleep 1000"); }
  std::signal(SIGCHLD, handler);
}

TEST_F(ChildProgramTest, OneThatIsNotThereIsTold) {
  EXPECT_EQ(ChildProgram::Start({"no-such-program"}, folder_.path() + "/log", *guard_).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(ChildProgram::Start({"true"}, folder_.path() + "/absent/log", *guard_).status().code(), StatusCode::kIo);
}

}  // namespace
}  // namespace millrace
