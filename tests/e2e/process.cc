#include "e2e/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "paths.h"
#include "sanitized.h"

namespace millrace {

Process::Process(const std::string& program, const std::vector<std::string>& arguments, const Options& options) {
  const std::string path = BinDir() + "/" + program;
  const std::string ranks = std::to_string(options.ranks);
  std::vector<std::string> launcher;
  if (options.ranks > 0) launcher = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", ranks};
  if (!options.open_mpi_5.empty()) {
    launcher = {options.open_mpi_5 + "/bin/mpirun",
                "--with-ft",
                "ulfm",
                "--map-by",
                ":OVERSUBSCRIBE",
                "--bind-to",
                "none",
                "-n",
                ranks};
  }
  std::vector<char*> argv;
  for (const std::string& word : launcher) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(const_cast<char*>(path.c_str()));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int errors = open(errors_path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    dup2(open(options.input.c_str(), O_RDONLY), 0);
    dup2(pipe_ends[1], 1);
    dup2(errors, 2);
    if (options.no_output) {
      close(1);
      close(2);
    }
    if (options.ignores_hangup) signal(SIGHUP, SIG_IGN);
    if (options.ignores_children) signal(SIGCHLD, SIG_IGN);
    if (options.file_size_limit > 0) {
      const rlimit limit{options.file_size_limit, options.file_size_limit};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (options.ranks > 0) {
      setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
      setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
      setenv("TMPDIR", folder_.path().c_str(), 1);  // mpirun leaves files when it is killed
    }
    if (!options.open_mpi_5.empty()) {
      setenv("PRTE_ALLOW_RUN_AS_ROOT", "1", 1);
      setenv("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
      setenv("LD_LIBRARY_PATH", (options.open_mpi_5 + "/lib").c_str(), 1);
    }
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  close(errors);
  out_ = pipe_ends[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
}

bool Process::ReadLine(std::string* line) {
  while (true) {
    const size_t end = pending_.find('\n');
    if (end != std::string::npos) {
      *line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return true;
    }
    char bytes[4096];
    const ssize_t got = read(out_, bytes, sizeof(bytes));
    if (got <= 0) return false;
    pending_.append(bytes, static_cast<size_t>(got));
    output_.append(bytes, static_cast<size_t>(got));
  }
}

void Process::Signal(int signal) const { kill(pid_, signal); }

int Process::Wait() {
  std::string line;
  while (ReadLine(&line)) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Process::errors() const {
  std::ifstream file(errors_path_);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Process::CloseOutput() {
  close(out_);
  out_ = -1;
}

std::string WhyNoRanks() {
  if (kIsSanitized) return "sanitizers report what Open MPI does, and need suppressions for it";
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) return "there is no mpirun (openmpi-bin)";
  if (!std::filesystem::exists(BinDir() + "/../lib/libmillrace_mpi.so")) return "built without MPI (libopenmpi-dev)";
  return "";
}

std::vector<std::string> ScoresOf(const std::string& output_dir, const std::vector<std::string>& files,
                                  const std::vector<std::string>& more_flags) {
  std::vector<std::string> scores;
  for (const std::string& file : files) {
    std::vector<std::string> flags = {"--model_dir=" + output_dir + "/model", "--input=" + file, "--batch_size=100"};
    flags.insert(flags.end(), more_flags.begin(), more_flags.end());
    Process predictor("predictor", flags);
    std::string line;
    while (predictor.ReadLine(&line)) scores.push_back(line);
    EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
  }
  return scores;
}

double NumberBehind(const std::string& text, const std::string& words, const std::string& from) {
  const size_t start = from.empty() ? 0 : text.find(from);
  const size_t at = text.find(words, start == std::string::npos ? text.size() : start);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + words.size()));
}

bool AnyProcessMentions(const std::string& token) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (text.find(token) != std::string::npos) return true;
  }
  return false;
}

}  // namespace millrace
