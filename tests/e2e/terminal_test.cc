#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/file.h"
#include "e2e/killed_job.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "paths.h"

namespace millrace {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A program of bin/ in the foreground of a terminal of its own, where somebody types and reads.
class AtTerminal {
 public:
  AtTerminal(const std::string& program, const std::vector<std::string>& arguments) {
    const std::string path = BinDir() + "/" + program;
    std::vector<char*> argv = {const_cast<char*>(path.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      setenv("TERM", "xterm", 1);
      unsetenv("NO_COLOR");
      execv(path.c_str(), argv.data());
      _exit(127);
    }
  }
  ~AtTerminal() {
    close(terminal_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  AtTerminal(const AtTerminal&) = delete;
  AtTerminal& operator=(const AtTerminal&) = delete;

  void Type(const std::string& text) const {
    ASSERT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Reads what comes next; false at the end of the program.
  bool Read() {
    char bytes[4096];
    const ssize_t got = read(terminal_, bytes, sizeof(bytes));
    if (got <= 0) return false;
    screen_.append(bytes, static_cast<size_t>(got));
    return true;
  }
  /// Reads what is left; the exit code.
  int Wait() {
    while (Read()) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& screen() const { return screen_; }

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string screen_;
};

TEST(Terminal, EachTypedLineIsAnswered) {
  const SmallJob small(60, 1);
  const std::string out = small.folder() + "/out";
  TrainToTheEnd(small.DeepJob(""), out);
  const std::vector<std::string> scores = ScoresOf(out, small.files());
  const std::string lines = ReadFile(small.files()[0]).value();

  AtTerminal predictor("predictor", {"--model_dir=" + out + "/model"});
  size_t at = 0;
  for (size_t k = 0; k < 3; ++k) {
    const size_t end = lines.find('\n', at) + 1;
    predictor.Type(lines.substr(at, end - at));
    at = end;
    while (!predictor.screen().ends_with("\r\n" + scores[k] + "\r\n")) {
      ASSERT_TRUE(predictor.Read()) << predictor.screen();
    }
  }
  predictor.Type("\x04");
  EXPECT_EQ(predictor.Wait(), 0) << predictor.screen();
}

TEST(Terminal, WhatIsFetchedDoesNotBeginBehindTheProgress) {
  const SmallJob small(40000, 1);
  AtTerminal trainer("trainer",
                     {"--trainer_desc=" + small.CountingJob("epochs: 1000000"),
                      "--set=fetch_config.fetch_var_names=[\"loss\"]", "--set=fetch_config.print_period=1000"});
  const std::string behind_progress = "\x1b[0mtime: [";
  while (trainer.screen().find("\r\x1b[Ktime: [") == std::string::npos &&
         trainer.screen().find(behind_progress) == std::string::npos) {
    ASSERT_TRUE(trainer.Read()) << trainer.screen();
  }
  trainer.Type("\x03");
  EXPECT_EQ(trainer.Wait(), 130) << trainer.screen();
  EXPECT_THAT(trainer.screen(), Not(HasSubstr(behind_progress)));
}

TEST(Terminal, AWarningDoesNotBeginBehindTheProgress) {
  const TempDir folder = TempDir::Create("millrace_terminal").value();
  const std::string rows = folder.path() + "/rows.csv";
  ASSERT_TRUE(WriteFileAtomically(rows, "click,age\n1,nan\n").ok());
  ASSERT_TRUE(WriteFileAtomically(folder.path() + "/job", "filelist: \"" + rows + R"("
      class_name: "MultiTrainer" device_worker_name: "HogwildWorker" thread_num: 1
      data_desc { name: "csv" batch_size: 4 pipe_command: "sleep 0.3; cat"
        feature { name: "click" id {} is_dense: true }
        feature { name: "age" } }
      model {
        layer { name: "y" fc { in: "age" units: 1 } }
        loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "click" }
        optimizer { sgd { lr: 0.1 } } })")
                  .ok());
  AtTerminal trainer("trainer", {"--trainer_desc=" + folder.path() + "/job"});
  EXPECT_EQ(trainer.Wait(), 3) << trainer.screen();
  EXPECT_THAT(trainer.screen(), HasSubstr("\r\033[Kwarning: " + rows + ":2 (a line of pipe_command"));
}

}  // namespace
}  // namespace millrace
