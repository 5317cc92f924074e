// Trains a job: what `trainer --trainer_desc=FILE` runs.

#include <gflags/gflags.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/command_line.h"
#include "app/compare_jobs.h"
#include "app/list_ops.h"
#include "app/stop_on_signal.h"
#include "app/sweep_run.h"
#include "checkpoint/checkpoint_store.h"
#include "comm/mpi_plugin.h"
#include "config/print_config.h"
#include "core/terminal.h"
#include "core/words.h"
#include "device_worker/device_worker.h"
#include "kernels/gemm.h"
#include "model/fleet_program.h"
#include "program/block_builder.h"
#include "program/program_files.h"
#include "ranks/rank_group.h"
#include "ranks/rank_restarts.h"
#include "session/open_job.h"
#include "trainer/default_environment.h"
#include "trainer/job_run.h"
#include "trainer/same_job.h"
#include "trainer/validate_job.h"

DEFINE_string(trainer_desc, "", "FILE: the job, a TrainerDesc in prototxt");
DEFINE_string(output_dir, "",
              "DIR: output folder for run.json, metrics.jsonl, checkpoints and the model; overrides output.dir");
DEFINE_string(
    resume, "never",
    "auto (resume from the newest intact checkpoint), never (start over) or DIR (resume from this checkpoint)");
DEFINE_string(model, "last", "last or best: the checkpoint that --set infer=true with --resume=auto reads");
DEFINE_string(sweep, "", "FILE: trials of the job with other values of its fields, a SweepDesc in prototxt");
DEFINE_bool(validate_only, false,
            "compile the job, run the pipe on the first lines, print a batch and the model's size, and exit");
DEFINE_bool(print_config, false, "print the job with overrides and defaults, and exit");
DEFINE_bool(list_ops, false, "print all available operators, including those of the job's plugins, and exit");
DEFINE_bool(compare_jobs, false, "for scripts: compares jobs (app/compare_jobs.h)");
DEFINE_string(print_ops, "", "authored, lowered or fused: print the operators of a batch, and exit");

namespace millrace {
namespace {

const ProgramInfo kProgram{
    .name = "trainer",
    .summary = "Trains a click-through or recommendation model on files or on the output of a shell command.",
    .usage = "trainer --trainer_desc=FILE [flags]",
    .groups = {{"Job", {"trainer_desc", "set", "output_dir", "resume", "model", "sweep"}},
               {"Inspect without training", {"validate_only", "print_config", "print_ops", "list_ops"}}},
    .repeated = {{"set", "PATH=VALUE", "override a field of the job, for example data_desc.batch_size=64"}},
    .examples =
        "trainer --trainer_desc=configs/wide_deep.prototxt --set thread_num=8 --output_dir=out\n"
        "trainer --trainer_desc=configs/wide_deep.prototxt --sweep=rates.prototxt --output_dir=out/rates",
};

Status PrintOps(const CompiledJob& job) {
  if (FLAGS_print_ops != "authored" && FLAGS_print_ops != "lowered" && FLAGS_print_ops != "fused") {
    return InvalidConfig("--print_ops is authored, lowered or fused, not \"" + FLAGS_print_ops + "\"");
  }
  if (FLAGS_print_ops == "fused") {
    PrintOut(PrintOps(job.train().ops()));
    return FlushStandardOutput();
  }
  const BlockDesc& block = job.model().main.blocks(0);
  std::vector<OpDesc> ops(block.ops().begin(), block.ops().end());
  if (FLAGS_print_ops == "authored") {
    std::erase_if(ops, [](const OpDesc& op) { return !IsAuthored(op); });
  }
  PrintOut(PrintOps(ops));
  return FlushStandardOutput();
}

/// Says what the machine makes of the job that its author may not expect.
void WarnOfMachine(const CompiledJob& job) {
  if (job.desc().precision() == TrainerDesc::BF16 && !CpuHasBf16()) {
    std::fputs("warning: this processor has no bfloat16 instructions; precision: BF16 is run in FP32\n", stderr);
  }
  constexpr int kSensibleThreads = 16;
  if (const auto processors = static_cast<int>(UsableProcessors().size());
      job.workers() > kSensibleThreads * processors) {
    std::fprintf(
        stderr,
        "warning: thread_num: %d workers share %d processors; each has batches, intermediates and metrics of its "
        "own, so that the start, checkpoints and the end take longer, and nothing is trained faster\n",
        job.workers(), processors);
  }
}

void SayRanks(const RankGroup& ranks, const CompiledJob& job) {
  const DistDesc& dist = job.desc().dist();
  const int servers = job.rank_servers(ranks.size());
  const int trainers = ranks.size() - servers;
  const bool infer = job.desc().infer();
  std::fprintf(stderr, "%s on %d rank%s, ", infer ? "inferring" : "training", trainers, trainers == 1 ? "" : "s");
  if (servers > 0) std::fprintf(stderr, "with the rows of tables on %d more (dist.mode: SPLIT), ", servers);
  if (infer) {
    std::fputs("each file by one of them\n", stderr);
  } else if (job.trains_in_step()) {
    std::fprintf(stderr, "in step: %d batches of %d examples an update (step numbers count batches)\n",
                 job.rank_micro_batches(), job.desc().data_desc().batch_size());
  } else if (dist.update() == DistDesc::SSP) {
    std::fprintf(stderr, "none more than %d batches ahead of another (dist.update: SSP)\n", dist.staleness());
  } else if (job.geo_steps() > 0) {
    std::fprintf(stderr, "each at its own pace on copies, told of every %d batches (dist.update: GEO)\n",
                 job.geo_steps());
  } else {
    std::fputs("each at its own pace (dist.update: ASYNC)\n", stderr);
  }
}

/// Whether the job's program is that of a server, on all ranks or on none.
Result<bool> HasServerProgram(const TrainerDesc& desc, RankGroup& ranks) {
  if (!desc.has_program()) return false;
  const std::string& path = desc.program().main();
  Result<ProgramDesc> main = ReadProgram(path);
  MR_TRY(ranks.Agree(main.status()));
  const bool serves = IsOfServer(*main);
  if (serves && ranks.leads()) {
    std::fprintf(stderr, "%s is the program of a server (listen_and_serv); ", path.c_str());
  }
  std::string of_leader = serves ? "1" : "0";
  MR_TRY(ranks.FromLeader(&of_leader));
  MR_TRY(ranks.Agree(of_leader == (serves ? "1" : "0")
                         ? Status::Ok()
                         : InvalidConfig(path + " is " + (serves ? "" : "not ") +
                                         "the program of a server, unlike that of rank 0: all ranks of a job train, "
                                         "so give them the program of a trainer")));
  return serves;
}

/// Whether ranks try a job again, without some that were lost.
bool IsRestart(const RankGroup& ranks) { return ranks.restarts() != nullptr && ranks.restarts()->count() > 0; }

std::string OutputDirOf(const TrainerDesc& desc) {
  return FLAGS_output_dir.empty() ? desc.output().dir() : FLAGS_output_dir;
}

/// Where a try of a job goes on from. One behind a lost rank takes what the one before has saved.
std::string ResumeOf(const RankGroup& ranks, const TrainerDesc& desc, const std::string& output_dir) {
  if (!IsRestart(ranks)) return FLAGS_resume;
  if (ranks.leads()) {
    std::fprintf(stderr, "%s is lost; %s\n", ranks.restarts()->last_lost().c_str(),
                 ranks.size() == 1 ? "one rank goes on" : (std::to_string(ranks.size()) + " ranks go on").c_str());
  }
  // An inference trains nothing, and a job without a folder has saved nothing: both begin again.
  return desc.infer() || output_dir.empty() ? FLAGS_resume : "auto";
}

/// Leaves a rank that trains, where ranks go on without some that were lost.
void KeepTrainer(const RankGroup& ranks, TrainerDesc* desc) {
  if (!IsRestart(ranks) || RankServers(*desc, ranks.size()) < ranks.size()) return;
  desc->mutable_dist()->set_servers(ranks.size() - 1);
  if (!ranks.leads()) return;
  std::fprintf(stderr, "dist.servers: %d from now on, so that one rank is left to train\n", ranks.size() - 1);
}

int CloseFile(std::FILE* file) { return file == nullptr ? 0 : std::fclose(file); }

/// Whether the flags ask for no run, only for a look at the job.
bool OnlyLooks() { return FLAGS_print_config || FLAGS_list_ops || !FLAGS_print_ops.empty(); }

/// Runs one rank of a job.
Status RunTrainer(const CommandLine& line, RankGroup& ranks, const std::stop_token& stop) {
  const bool leads = ranks.leads();
  ConfigRequest request;
  request.file = FLAGS_trainer_desc;
  request.overrides = line.repeated[0];
  request.stop = stop;
  request.of_ranks = ranks.size() > 1;
  // Operators are shown one by one, as they are before they are fused.
  if (FLAGS_print_ops == "authored" || FLAGS_print_ops == "lowered") request.overrides.emplace_back("fuse=false");
  request.trained_passes = [&ranks](const TrainerDesc& desc) {
    return CompletePasses(IsRestart(ranks) ? "auto" : FLAGS_resume, OutputDirOf(desc));
  };
  request.has_output_folder = OnlyLooks() || !FLAGS_output_dir.empty();
  Result<JobAndEnvironment> read = LoadJob(std::move(request));
  MR_TRY(ranks.Agree(read.status()));
  JobAndEnvironment& loaded = *read;
  LoadedConfig& config = loaded.config;
  if (leads) std::fputs(config.warnings.c_str(), stderr);
  if (FLAGS_list_ops) {
    PrintOut(ListOps(loaded.environment.ops));
    return FlushStandardOutput();
  }
  if (FLAGS_print_config) {
    PrintOut(PrintConfig(*config.desc));
    return FlushStandardOutput();
  }
  std::string output_dir = OutputDirOf(*config.desc);
  const std::string resume = ResumeOf(ranks, *config.desc, output_dir);
  MR_TRY(CheckSameJob(ranks, config, output_dir));
  KeepTrainer(ranks, config.desc.get());
  if (FLAGS_print_ops.empty()) {
    MR_ASSIGN(const bool serves, HasServerProgram(*config.desc, ranks));
    if (serves) {
      if (leads) std::fputs("there is nothing to serve: each trainer has a part of every table\n", stderr);
      return Status::Ok();
    }
  }
  const bool runs = FLAGS_print_ops.empty();
  OpenOptions options{.output_dir = std::move(output_dir),
                      .resume = resume,
                      .reads_input = runs,
                      .locks_folder = !FLAGS_validate_only,
                      .makes_session = runs,
                      .terminal = leads ? stderr : nullptr,
                      .inputs = {.ranks = &ranks}};
  MR_ASSIGN(OpenedJob opened, OpenJob(ranks, std::move(config), loaded.environment, std::move(options), stop));
  const CompiledJob& job = *opened.job;
  if (!runs) return PrintOps(job);
  if (leads) WarnOfMachine(job);
  JobSession& session = *opened.session;
  if (FLAGS_validate_only) {
    MR_TRY(ValidateJob(session, stop));
    return FlushStandardOutput();
  }
  if (job.is_dist() && leads) SayRanks(ranks, job);
  RunOutput output;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nobody(leads ? nullptr : std::fopen("/dev/null", "w"),
                                                               CloseFile);
  if (nobody != nullptr) output.terminal = nobody.get();
  MR_ASSIGN(const RunSummary summary, RunJob(session, resume, FLAGS_model, stop, output, std::move(opened.folder)));
  if (summary.interrupted) return Cancelled("interrupted");
  if (summary.save_failures.empty()) return CheckPrinted();
  return IoError("the model is trained, but incremental.save_command failed after " +
                 std::to_string(summary.save_failures.size()) + " passes; the first: " + summary.save_failures[0]);
}

/// Whether the command line says what to do.
Status CheckCommandLine(const CommandLine& line) {
  MR_TRY(Status(line.status));
  if (!line.arguments.empty()) {
    std::error_code ignored;
    const std::string& word = line.arguments[0];
    if (FLAGS_trainer_desc.empty() && std::filesystem::is_regular_file(word, ignored)) {
      return InvalidConfig("the job's file is given by a flag: trainer --trainer_desc=" + word);
    }
    return InvalidConfig("\"" + line.arguments[0] + "\" is no flag; each override needs a --set of its own");
  }
  if (FLAGS_trainer_desc.empty() && !FLAGS_list_ops) {
    return InvalidConfig("--trainer_desc is missing: the job's prototxt file");
  }
  if (!FLAGS_sweep.empty() && OnlyLooks()) {
    return InvalidConfig(
        "a sweep is of many jobs: --print_config, --print_ops and --list_ops are for one, without --sweep");
  }
  if (!FLAGS_sweep.empty() && FLAGS_model != "last")
    return InvalidConfig("--model is for an inference, --sweep trains");
  return Status::Ok();
}

Status RunOrListSweep(const CommandLine& line, const std::stop_token& stop) {
  const SweepRequest request = {FLAGS_sweep, FLAGS_trainer_desc, line.repeated[0], FLAGS_output_dir, FLAGS_resume};
  return FLAGS_validate_only ? ListSweep(request, stop) : RunSweep(request, stop);
}

Status ListOpsOfNoJob() {
  MR_ASSIGN(const Environment environment, MakeDefaultEnvironment());
  PrintOut(ListOps(environment.ops));
  return FlushStandardOutput();
}

/// `*is_told` becomes true where the failure was printed, or another rank does that.
Status Run(const CommandLine& line, bool* is_told) {
  StopOnSignal signals(TimeBehindSigcont());
  const bool is_launched = StartedByLauncher();
  const auto run = [&](RankGroup& ranks) -> Status {
    if (ranks.leads()) {
      for (const std::string& warning : line.warnings) Say(warning);
    }
    MR_TRY(ranks.Agree(CheckCommandLine(line)));
    if (!FLAGS_sweep.empty() && is_launched) {
      return ranks.Agree(
          InvalidConfig("a sweep starts its trainings itself, each as one process: run it without mpirun"));
    }
    if (!FLAGS_sweep.empty()) return RunOrListSweep(line, signals.token());
    if (!OnlyLooks() && !FLAGS_validate_only) return RunTrainer(line, ranks, signals.token());
    if (!ranks.leads()) return Status::Ok();
    return FLAGS_trainer_desc.empty() ? ListOpsOfNoJob() : RunTrainer(line, *RankGroup::Solo(), signals.token());
  };
  if (!is_launched) return run(*RankGroup::Solo());
  MR_ASSIGN(const std::unique_ptr<Communicator> communicator, OpenMpi());
  *is_told = true;
  return RunOnRanks(
      *communicator, signals.token(),
      [&](RankGroup& ranks) {
        signals.BeQuiet(!ranks.leads());
        return run(ranks);
      },
      [](const Status& failure) { PrintFailure(kProgram.name, failure); });
}

}  // namespace
}  // namespace millrace

// NOLINTNEXTLINE(bugprone-exception-escape): a Result is asked for its value where it has one
int main(int argc, char** argv) {
  const millrace::CommandLine line = millrace::ReadCommandLine(millrace::kProgram, argc, argv);
  if (line.exit_code.has_value()) return *line.exit_code;
  if (FLAGS_compare_jobs) return millrace::EndProgram("trainer", millrace::CompareJobs());
  bool is_told = false;
  const millrace::Status status = millrace::Run(line, &is_told);
  if (!is_told) return millrace::EndProgram("trainer", status);
  // An MPI that has lost a rank may wait for it at exit, and others go on only when this one is gone.
  std::fflush(nullptr);
  std::quick_exit(millrace::ExitCode(status));
}
