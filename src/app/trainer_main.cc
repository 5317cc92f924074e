// Trains a job: what `trainer --trainer_desc=FILE` runs.

#include <gflags/gflags.h>

#include <cstdio>
#include <filesystem>

#include "app/command_line.h"
#include "app/default_environment.h"
#include "app/list_ops.h"
#include "app/stop_on_signal.h"
#include "app/validate_job.h"
#include "config/print_config.h"
#include "device_worker/device_worker.h"
#include "kernels/gemm.h"
#include "program/block_builder.h"
#include "trainer/job_run.h"

DEFINE_string(trainer_desc, "", "FILE: the job, a TrainerDesc in prototxt");
DEFINE_string(output_dir, "", "DIR: where run.json, metrics.jsonl, checkpoints and the model go; overrides output.dir");
DEFINE_string(resume, "never", "auto, never or DIR: go on from the newest whole checkpoint, anew, or from this one");
DEFINE_string(model, "last", "last or best: whose parameters --set infer=true with --resume=auto takes");
DEFINE_bool(validate_only, false,
            "compile, run the pipe on the first lines, print a batch and the model's size, and end");
DEFINE_bool(print_config, false, "print the job with overrides and defaults written out, and end");
DEFINE_bool(list_ops, false, "print every operator that programs may use, those of the job's plugins too, and end");
DEFINE_string(print_ops, "", "authored, lowered or fused: print the operators of a batch, and end");

namespace millrace {
namespace {

const ProgramInfo kProgram{
    .name = "trainer",
    .summary = "Trains a click-through or recommendation model from text files behind a shell command.",
    .usage = "trainer --trainer_desc=FILE [flags]",
    .groups = {{"Job", {"trainer_desc", "set", "output_dir", "resume", "model"}},
               {"Look without training", {"validate_only", "print_config", "print_ops", "list_ops"}}},
    .repeated = {{"set", "PATH=VALUE", "override a field of the job, for example data_desc.batch_size=64"}},
    .examples = "trainer --trainer_desc=configs/wide_deep.prototxt --set thread_num=8 --output_dir=out",
};

Status PrintOps(const CompiledJob& job) {
  if (FLAGS_print_ops != "authored" && FLAGS_print_ops != "lowered" && FLAGS_print_ops != "fused") {
    return InvalidConfig("--print_ops is authored, lowered or fused, not \"" + FLAGS_print_ops + "\"");
  }
  if (FLAGS_print_ops == "fused") {
    std::fputs(PrintOps(job.train().ops()).c_str(), stdout);
    return FlushStandardOutput();
  }
  const BlockDesc& block = job.model().main.blocks(0);
  std::vector<OpDesc> ops(block.ops().begin(), block.ops().end());
  if (FLAGS_print_ops == "authored") {
    std::erase_if(ops, [](const OpDesc& op) { return !IsAuthored(op); });
  }
  std::fputs(PrintOps(ops).c_str(), stdout);
  return FlushStandardOutput();
}

Status Run(const CommandLine& line) {
  if (!line.arguments.empty()) {
    std::error_code ignored;
    const std::string& word = line.arguments[0];
    if (FLAGS_trainer_desc.empty() && std::filesystem::is_regular_file(word, ignored)) {
      return InvalidConfig("the job's file is given by a flag: trainer --trainer_desc=" + word);
    }
    return InvalidConfig("\"" + line.arguments[0] + "\" is no flag; each override needs a --set of its own");
  }
  if (FLAGS_trainer_desc.empty() && FLAGS_list_ops) {
    MR_ASSIGN(const Environment environment, MakeDefaultEnvironment());
    std::fputs(ListOps(environment.ops).c_str(), stdout);
    return FlushStandardOutput();
  }
  if (FLAGS_trainer_desc.empty()) return InvalidConfig("--trainer_desc is missing: the job's prototxt file");
  const StopOnSignal signals;
  ConfigRequest request;
  request.file = FLAGS_trainer_desc;
  request.overrides = line.repeated[0];
  request.stop = signals.token();
  const bool only_looks = FLAGS_print_config || FLAGS_list_ops || !FLAGS_print_ops.empty();
  request.has_output_folder = only_looks || !FLAGS_output_dir.empty();
  MR_ASSIGN(JobAndEnvironment loaded, LoadJob(std::move(request)));
  LoadedConfig& config = loaded.config;
  std::fputs(config.warnings.c_str(), stderr);
  if (FLAGS_list_ops) {
    std::fputs(ListOps(loaded.environment.ops).c_str(), stdout);
    return FlushStandardOutput();
  }
  if (FLAGS_print_config) {
    std::fputs(PrintConfig(*config.desc).c_str(), stdout);
    return FlushStandardOutput();
  }
  std::string output_dir = FLAGS_output_dir.empty() ? config.desc->output().dir() : FLAGS_output_dir;
  MR_ASSIGN(const std::shared_ptr<const CompiledJob> job,
            CompiledJob::Create(std::move(config), loaded.environment, std::move(output_dir), {}, signals.token()));
  if (!FLAGS_print_ops.empty()) return PrintOps(*job);
  if (job->desc().precision() == TrainerDesc::BF16 && !CpuHasBf16()) {
    std::fputs("warning: this processor has no bfloat16 instructions; precision: BF16 is run in FP32\n", stderr);
  }
  constexpr int kSensibleThreads = 16;
  if (const auto processors = static_cast<int>(UsableProcessors().size());
      job->workers() > kSensibleThreads * processors) {
    std::fprintf(
        stderr,
        "warning: thread_num: %d workers share %d processors; each has batches, intermediates and metrics of its "
        "own, so that the start, checkpoints and the end take longer, and nothing is trained faster\n",
        job->workers(), processors);
  }
  MR_ASSIGN(const std::unique_ptr<JobSession> session, JobSession::Create(job, {}, signals.token()));
  if (FLAGS_validate_only) {
    MR_TRY(ValidateJob(*session, signals.token()));
    return FlushStandardOutput();
  }
  MR_ASSIGN(const RunSummary summary, RunJob(*session, FLAGS_resume, FLAGS_model, signals.token()));
  if (summary.interrupted) return Cancelled("interrupted");
  if (summary.save_failures.empty()) return CheckPrinted();
  return IoError("the model is trained, but incremental.save_command failed after " +
                 std::to_string(summary.save_failures.size()) + " passes; the first: " + summary.save_failures[0]);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  const millrace::CommandLine line = millrace::ParseCommandLine(millrace::kProgram, argc, argv);
  if (line.exit_code.has_value()) return *line.exit_code;
  const millrace::Status status = millrace::Run(line);
  return millrace::EndProgram("trainer", status);
}
