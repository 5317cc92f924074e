#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/file.h"

namespace millrace {

/// A program of bin/ that a test runs: standard output is read by line, standard error goes to a file.
class Process {
 public:
  struct Options {
    /// Largest file that it may write (RLIMIT_FSIZE); 0: any.
    size_t file_size_limit = 0;
    std::string input = "/dev/null";
    /// Standard output and error are closed, as `>&- 2>&-` closes them.
    bool no_output = false;
    /// It starts with SIGHUP ignored, as nohup starts programs.
    bool ignores_hangup = false;
    /// It starts with SIGCHLD ignored, as careless parents start programs.
    bool ignores_children = false;
    /// So many ranks, started by mpirun, which is the process then; 0: the program itself.
    int ranks = 0;
    /// Folder of an Open MPI 5, whose mpirun starts the ranks and lets them go on without lost ones; empty: the mpirun
    /// of PATH.
    std::string open_mpi_5 = {};
  };
  Process(const std::string& program, const std::vector<std::string>& arguments, const Options& options);
  Process(const std::string& program, const std::vector<std::string>& arguments)
      : Process(program, arguments, Options()) {}
  /// Kills it when it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// The next line of standard output without its end; false at its end.
  bool ReadLine(std::string* line);
  void Signal(int signal) const;
  /// Reads standard output no more: the program's next writes fail.
  void CloseOutput();
  /// Reads standard output to its end (kept in output()) and waits. The exit code, or 128 + the signal.
  int Wait();
  const std::string& output() const { return output_; }
  pid_t pid() const { return pid_; }
  std::string errors() const;

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  const TempDir folder_ = TempDir::Create("millrace_process_").value();
  const std::string errors_path_ = folder_.path() + "/errors";
  std::string pending_;
  std::string output_;
};

/// Why this machine or this build starts no ranks (Process::Options::ranks); empty where it does. A test that starts
/// some asks first, and skips with the answer.
std::string WhyNoRanks();

/// What `predictor` says of the rows of files, in their order, by the model of a run's output folder, with more flags;
/// a failed predictor fails the test.
std::vector<std::string> ScoresOf(const std::string& output_dir, const std::vector<std::string>& files,
                                  const std::vector<std::string>& more_flags = {});

/// The number behind `words`, which are looked for behind `from`; -1 where they are not there.
double NumberBehind(const std::string& text, const std::string& words, const std::string& from = "");

/// True when the command line of a process, whosever child, holds `token`.
bool AnyProcessMentions(const std::string& token);

}  // namespace millrace
