#include "app/sweep_run.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "app/command_line.h"
#include "app/runs_script.h"
#include "core/file.h"
#include "core/terminal.h"
#include "job/output_folder.h"

namespace millrace {
namespace {

/// Reads and checks all, and says what is odd of the job.
Result<PlannedSweep> PlanAndWarn(const SweepRequest& request, const std::stop_token& stop) {
  if (request.resume != "auto" && request.resume != "never") {
    return InvalidConfig("the trainings of a sweep go on from their own folders: --resume=auto or never, not " +
                         request.resume);
  }
  MR_ASSIGN(PlannedSweep plan, PlanSweep(request, stop));
  if (plan.output_dir.empty()) {
    return InvalidConfig("a sweep needs a folder, below which each training has its own: give --output_dir");
  }
  std::fputs(plan.warnings.c_str(), stderr);
  return plan;
}

/// A file without a name that holds `text`, for the program that takes the place of this one.
Result<FileDescriptor> HeldText(const std::string& text) {
  FileDescriptor file(::memfd_create("sweep", 0));
  if (!file.is_open()) return IoErrorFromErrno("cannot keep the plan of the sweep", errno);
  MR_TRY(WriteAll(file, text, "the plan of the sweep"));
  (void)::lseek(file.get(), 0, SEEK_SET);
  return file;
}

}  // namespace

Status RunSweep(const SweepRequest& request, const std::stop_token& stop) {
  MR_ASSIGN(const PlannedSweep plan, PlanAndWarn(request, stop));
  MR_ASSIGN(const FileDescriptor folder, MakeOutputFolder(plan.output_dir));
  if (!folder.is_open()) return IoErrorFromErrno("cannot open the output folder \"" + plan.output_dir + "\"", errno);
  MR_ASSIGN(const FileDescriptor text, HeldText(PlanAsJson(plan)));
  (void)::fcntl(folder.get(), F_SETFD, 0);  // its lock lasts as long as the sweep
  std::vector<std::string> arguments = {"sweep", std::to_string(text.get()), request.resume, plan.output_dir,
                                        "--trainer_desc=" + request.trainer_desc};
  for (const std::string& field : request.overrides) arguments.push_back("--set=" + field);
  if (stop.stop_requested()) return Cancelled("stopped before the sweep began");
  return BecomeRunsScript(arguments);
}

Status ListSweep(const SweepRequest& request, const std::stop_token& stop) {
  MR_ASSIGN(const PlannedSweep plan, PlanAndWarn(request, stop));
  for (const SweepJob& job : plan.jobs) {
    std::string line = job.name;
    for (const std::string& field : job.overrides) line += " --set '" + field + "'";
    PrintOut(line + "\n");
  }
  return FlushStandardOutput();
}

}  // namespace millrace
