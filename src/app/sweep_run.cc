#include "app/sweep_run.h"

#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "app/command_line.h"
#include "app/sweep_processes.h"
#include "core/file.h"
#include "core/json_writer.h"
#include "core/terminal.h"
#include "core/xxhash.h"
#include "job/output_folder.h"
#include "runs/run_comparison.h"
#include "runs/run_folder.h"
#include "runs/run_table_text.h"
#include "runs/runs_page.h"
#include "sweep.pb.h"

namespace millrace {
namespace {

using Outcome = SweepProcesses::Outcome;

/// What a round of a halving decided about a trial, and by what.
struct RoundResult {
  double value = std::numeric_limits<double>::quiet_NaN();
  bool goes_on = false;
  std::string metric;
  int factor = 0;
  std::string job;  ///< fingerprint of the jobs of the trial
};
/// By epochs after which the round ends, then by trial.
using Rounds = std::map<int, std::map<std::string, RoundResult>>;

/// Decisions outlive the runs that made them: a training that went on has other values now.
Rounds ReadRounds(const std::string& path) {
  Rounds rounds;
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return rounds;
  simdjson::dom::parser parser;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    simdjson::dom::element line;
    const auto error = parser.parse(text->substr(begin, end - begin)).get(line);
    begin = end + 1;
    int64_t epochs = 0;
    int64_t factor = 0;
    std::string_view trial;
    std::string_view metric;
    std::string_view job;
    RoundResult result;
    if (error != simdjson::SUCCESS || line["epochs"].get_int64().get(epochs) != simdjson::SUCCESS ||
        line["trial"].get_string().get(trial) != simdjson::SUCCESS ||
        line["metric"].get_string().get(metric) != simdjson::SUCCESS ||
        line["factor"].get_int64().get(factor) != simdjson::SUCCESS ||
        line["job"].get_string().get(job) != simdjson::SUCCESS ||
        line["goes_on"].get_bool().get(result.goes_on) != simdjson::SUCCESS) {
      continue;
    }
    if (line["value"].get_double().get(result.value) != simdjson::SUCCESS) {
      result.value = std::numeric_limits<double>::quiet_NaN();
    }
    result.metric = metric;
    result.factor = static_cast<int>(factor);
    result.job = job;
    rounds[static_cast<int>(epochs)][std::string(trial)] = std::move(result);
  }
  return rounds;
}

Status WriteRounds(const std::string& path, const Rounds& rounds) {
  std::string text;
  for (const auto& [epochs, trials] : rounds) {
    for (const auto& [trial, result] : trials) {
      JsonWriter line;
      line.BeginObject().Key("epochs").Number(epochs).Key("trial").Text(trial).Key("value").Number(result.value);
      line.Key("goes_on").Bool(result.goes_on).Key("metric").Text(result.metric).Key("factor").Number(result.factor);
      line.Key("job").Text(result.job).EndObject();
      text += line.text() + "\n";
    }
  }
  return WriteFileAtomically(path, text);
}

bool KeepsBest(const TrainerDesc& job) {
  return job.eval().has_early_stopping() || !job.checkpoint().keep_best().empty();
}

/// The metric of the model that a training saved, as its last evaluation, or with early stopping its best, has it.
double ValueOf(const RunRecord& run, const PlannedSweep& plan) {
  const Curve* curve = run.Evaluation(plan.metric);
  if (curve == nullptr || curve->points.empty()) return std::numeric_limits<double>::quiet_NaN();
  const bool keeps_best = KeepsBest(plan.jobs[0].desc);
  double value = curve->points.back().value;
  for (const CurvePoint& point : curve->points) {
    if (keeps_best && ScoreOf(plan.better, point.value) > ScoreOf(plan.better, value)) value = point.value;
  }
  return value;
}

class SweepRun {
 public:
  SweepRun(const SweepRequest& request, const PlannedSweep& plan, SweepProcesses* processes, std::stop_token stop)
      : request_(request), plan_(plan), processes_(*processes), stop_(std::move(stop)) {
    for (const SweepJob& job : plan.jobs) jobs_[job.trial].push_back(&job);
  }

  /// Runs all trainings, round by round.
  Status Run();
  /// Prints the table of those that ended, and writes the page.
  Status Report() const;
  /// kCancelled after a stop, kIo when trainings failed.
  Status End() const;

 private:
  /// Runs the trainings of some trials, those of a halving's round up to `epochs`.
  void RunTrials(const std::vector<size_t>& trials, int epochs, bool is_first);
  /// The trials that go on, after the round that ends after `epochs`.
  Result<std::vector<size_t>> Choose(const std::vector<size_t>& trials, int epochs);
  /// Whether an earlier run of the sweep has chosen among the same trials, of the same jobs, by the same rule.
  bool IsDecided(const std::vector<size_t>& trials, int epochs) const;
  /// The trials that went on, by that choice.
  std::vector<size_t> ChosenBefore(const std::vector<size_t>& trials, int epochs);
  /// A result without a value, of the trial as it is to run now.
  RoundResult PlannedResult(size_t trial, int epochs) const;
  /// Says which trial of the last round is the best. One that a halving has thrown out may look better after few
  /// epochs.
  void TellBest(const std::vector<RunRecord>& runs, const RunTable& table) const;
  /// Mean over the seeds of a trial; NaN when one of them has none.
  double ScoreOfTrial(size_t trial) const;
  std::string RoundsPath() const { return plan_.output_dir + "/rounds.jsonl"; }

  const SweepRequest& request_;
  const PlannedSweep& plan_;
  SweepProcesses& processes_;
  const std::stop_token stop_;
  std::map<size_t, std::vector<const SweepJob*>> jobs_;  ///< by trial
  std::map<const SweepJob*, Outcome> outcomes_;
  Rounds rounds_;
  std::vector<size_t> last_trials_;  ///< of the round that ran last
};

void SweepRun::RunTrials(const std::vector<size_t>& trials, int epochs, bool is_first) {
  std::vector<SweepProcesses::Training> trainings;
  for (const size_t trial : trials) {
    for (const SweepJob* job : jobs_.at(trial)) {
      trainings.push_back({job, epochs, request_.resume == "auto" || !is_first});
    }
  }
  const std::vector<Outcome> outcomes = processes_.Run(trainings, stop_);
  for (size_t i = 0; i < trainings.size(); ++i) outcomes_[trainings[i].job] = outcomes[i];
}

double SweepRun::ScoreOfTrial(size_t trial) const {
  double sum = 0;
  const auto& jobs = jobs_.at(trial);
  for (const SweepJob* job : jobs) {
    const Outcome outcome = outcomes_.at(job);
    const bool has_ended = outcome == Outcome::kFinished || outcome == Outcome::kFinishedBefore;
    const Result<RunRecord> run = ReadRun(processes_.FolderOf(*job));
    sum += has_ended && run.ok() ? ValueOf(*run, plan_) : std::numeric_limits<double>::quiet_NaN();
  }
  return sum / static_cast<double>(jobs.size());
}

Result<std::vector<size_t>> SweepRun::Choose(const std::vector<size_t>& trials, int epochs) {
  std::vector<std::pair<double, size_t>> ranking;
  std::map<std::string, RoundResult>& results = rounds_[epochs];
  results.clear();
  for (const size_t trial : trials) {
    const double value = ScoreOfTrial(trial);
    RoundResult& result = results[plan_.sweep.trials[trial].name] = PlannedResult(trial, epochs);
    result.value = value;
    if (!std::isnan(value)) ranking.emplace_back(-ScoreOf(plan_.better, value), trial);
  }
  std::stable_sort(ranking.begin(), ranking.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const size_t count = std::min(ranking.size(), HalvingSurvivors(trials.size(), plan_.sweep.desc->halving().factor()));
  std::vector<size_t> chosen;
  for (size_t i = 0; i < count; ++i) {
    chosen.push_back(ranking[i].second);
    results[plan_.sweep.trials[ranking[i].second].name].goes_on = true;
  }
  std::sort(chosen.begin(), chosen.end());
  MR_TRY(WriteRounds(RoundsPath(), rounds_));
  return chosen;
}

RoundResult SweepRun::PlannedResult(size_t trial, int epochs) const {
  RoundResult result;
  result.metric = plan_.metric;
  result.factor = plan_.sweep.desc->halving().factor();
  XxHash64Stream hash;
  for (const SweepJob* job : jobs_.at(trial)) {
    TrainerDesc desc = job->desc;
    // A round is the same however many follow it.
    desc.set_epochs(epochs);
    const std::string bytes = desc.SerializePartialAsString();
    hash.Add(std::to_string(bytes.size()) + " " + bytes);
  }
  result.job = std::to_string(hash.Hash());
  return result;
}

bool SweepRun::IsDecided(const std::vector<size_t>& trials, int epochs) const {
  const auto known = rounds_.find(epochs);
  if (known == rounds_.end() || known->second.size() != trials.size()) return false;
  return std::all_of(trials.begin(), trials.end(), [&](size_t trial) {
    const auto result = known->second.find(plan_.sweep.trials[trial].name);
    if (result == known->second.end()) return false;
    const RoundResult planned = PlannedResult(trial, epochs);
    return result->second.metric == planned.metric && result->second.factor == planned.factor &&
           result->second.job == planned.job;
  });
}

std::vector<size_t> SweepRun::ChosenBefore(const std::vector<size_t>& trials, int epochs) {
  std::vector<size_t> chosen;
  for (const size_t trial : trials) {
    const RoundResult& result = rounds_.at(epochs).at(plan_.sweep.trials[trial].name);
    if (result.goes_on) chosen.push_back(trial);
    for (const SweepJob* job : jobs_.at(trial)) {
      SweepJob of_round = *job;
      of_round.desc.set_epochs(epochs);
      if (std::isnan(result.value)) {
        outcomes_[job] = Outcome::kFailed;
      } else if (HasFinished(processes_.FolderOf(*job), of_round)) {
        outcomes_[job] = Outcome::kFinishedBefore;
      } else {
        // Its folder was removed or has another run by now: it is no part of what this sweep can show.
        outcomes_.erase(job);
      }
    }
  }
  return chosen;
}

Status SweepRun::Run() {
  std::vector<size_t> trials;
  for (const auto& [trial, jobs] : jobs_) trials.push_back(trial);
  if (plan_.rounds.empty()) {
    last_trials_ = trials;
    RunTrials(trials, 0, true);
    return Status::Ok();
  }
  if (request_.resume == "auto") rounds_ = ReadRounds(RoundsPath());
  for (size_t round = 0; round < plan_.rounds.size() && !trials.empty() && !stop_.stop_requested(); ++round) {
    const int epochs = plan_.rounds[round];
    std::fprintf(stderr, "round %zu of %zu: %zu trial%s, up to %d epochs\n", round + 1, plan_.rounds.size(),
                 trials.size(), trials.size() == 1 ? "" : "s", epochs);
    last_trials_ = trials;
    const bool is_last = round + 1 == plan_.rounds.size();
    if (!is_last && IsDecided(trials, epochs)) {
      std::fputs("  decided before\n", stderr);
      trials = ChosenBefore(trials, epochs);
      continue;
    }
    RunTrials(trials, epochs, round == 0);
    if (is_last || stop_.stop_requested()) break;
    MR_ASSIGN(trials, Choose(trials, epochs));
  }
  return Status::Ok();
}

void SweepRun::TellBest(const std::vector<RunRecord>& runs, const RunTable& table) const {
  for (const RunRow& row : table.rows) {
    const std::string& name = runs[row.runs[0]].name;
    const auto best =
        std::find_if(plan_.jobs.begin(), plan_.jobs.end(), [&](const SweepJob& job) { return job.name == name; });
    if (std::find(last_trials_.begin(), last_trials_.end(), best->trial) == last_trials_.end()) continue;
    std::string flags;
    for (const std::string& field : plan_.sweep.trials[best->trial].overrides) flags += " --set '" + field + "'";
    std::fprintf(stderr, "best by %s:%s\n", plan_.metric.c_str(), flags.c_str());
    return;
  }
}

Status SweepRun::Report() const {
  std::vector<RunRecord> runs;
  for (const SweepJob& job : plan_.jobs) {
    const auto outcome = outcomes_.find(&job);
    if (outcome == outcomes_.end()) continue;
    if (outcome->second != Outcome::kFinished && outcome->second != Outcome::kFinishedBefore) continue;
    Result<RunRecord> run = ReadRun(processes_.FolderOf(job));
    if (!run.ok()) {
      std::fprintf(stderr, "warning: %s\n", run.status().message().c_str());
      continue;
    }
    run->name = job.name;
    runs.push_back(std::move(run).value());
  }
  if (runs.empty()) return Status::Ok();
  const bool is_measured = std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) {
    return run.Evaluation(plan_.metric) != nullptr && run.better.contains(plan_.metric);
  });
  // What a training saved is its best where it watches for that.
  Result<RunTable> compared =
      CompareRuns(runs, is_measured ? plan_.metric + (KeepsBest(plan_.jobs[0].desc) ? " best" : "") : "");
  if (!compared.ok()) compared = CompareRuns(runs, is_measured ? plan_.metric : "");
  MR_ASSIGN(const RunTable table, std::move(compared));
  PrintOut(RunTableText(table));
  const std::string page = plan_.output_dir + "/runs.html";
  MR_TRY(WriteFileAtomically(page, RunsPage(runs, table)));
  if (is_measured && runs.size() > 1) TellBest(runs, table);
  std::fprintf(stderr, "the page of all is %s\n", page.c_str());
  return FlushStandardOutput();
}

Status SweepRun::End() const {
  std::vector<std::string> failed;
  bool is_stopped = false;
  for (const SweepJob& job : plan_.jobs) {
    const auto outcome = outcomes_.find(&job);
    if (outcome == outcomes_.end()) continue;
    if (outcome->second == Outcome::kFailed) failed.push_back(job.name);
    is_stopped |= outcome->second == Outcome::kStopped || outcome->second == Outcome::kNotRun;
  }
  if (is_stopped || stop_.stop_requested()) {
    std::fputs("go on with --resume=auto\n", stderr);
    return Cancelled("interrupted");
  }
  if (failed.empty()) return Status::Ok();
  constexpr size_t kNamed = 10;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, failed.size()); ++i) names += (i == 0 ? "" : " and ") + failed[i];
  if (failed.size() > kNamed) names += " and others";
  return IoError(std::to_string(failed.size()) + " of " + std::to_string(plan_.jobs.size()) +
                 " trainings failed: " + names + ". log.txt in the folder of each says why; " +
                 (plan_.rounds.empty() ? "--resume=auto runs them again"
                                       : "the rounds were decided without them, and --resume=never runs all again"));
}

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

/// What the program ends with: an interruption, else the first failure, after telling of the others. Of a report whose
/// reader is gone the program says nothing any more, so that it comes first of all.
Status LastWord(std::vector<Status> statuses) {
  const auto is_failure = [](const Status& status) { return !status.ok(); };
  auto last = std::find_if(statuses.begin(), statuses.end(),
                           [](const Status& status) { return status.code() == StatusCode::kCancelled; });
  if (last == statuses.end()) last = std::find_if(statuses.begin(), statuses.end(), is_failure);
  for (auto status = statuses.begin(); status != statuses.end(); ++status) {
    if (status != last && !status->ok()) PrintFailure("trainer", *status);
  }
  return last == statuses.end() ? Status::Ok() : std::move(*last);
}

}  // namespace

Status RunSweep(const SweepRequest& request, const std::stop_token& stop) {
  MR_ASSIGN(const PlannedSweep plan, PlanAndWarn(request, stop));
  MR_ASSIGN(const FileDescriptor folder, MakeOutputFolder(plan.output_dir));
  if (!folder.is_open()) return IoErrorFromErrno("cannot open the output folder \"" + plan.output_dir + "\"", errno);
  MR_ASSIGN(const auto processes, SweepProcesses::Create(request, plan.output_dir, plan.sweep.desc->at_once()));
  if (request.resume == "never") {
    std::error_code ignored;
    std::filesystem::remove(plan.output_dir + "/rounds.jsonl", ignored);
  }
  SweepRun run(request, plan, processes.get(), stop);
  Status ran = run.Run();
  Status reported = run.Report();
  return LastWord({std::move(reported), std::move(ran), run.End()});
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
