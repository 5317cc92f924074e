#include "app/sweep_jobs.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "config/checker.h"
#include "core/edit_distance.h"
#include "core/json_writer.h"
#include "core/name_list.h"
#include "core/xxhash.h"
#include "features/feature_statistics.h"
#include "job/compiled_job.h"
#include "job/job_mistakes.h"
#include "model/metric_spec.h"
#include "program/model_defaults.h"
#include "sweep.pb.h"
#include "trainer/default_environment.h"

namespace millrace {
namespace {

ConfigRequest RequestOf(const SweepRequest& request, const SweepTrial* trial, const std::stop_token& stop) {
  ConfigRequest config;
  config.file = request.trainer_desc;
  config.overrides = request.overrides;
  if (trial != nullptr)
    config.overrides.insert(config.overrides.end(), trial->overrides.begin(), trial->overrides.end());
  config.stop = stop;
  return config;
}

/// What evaluations of a job measure, by printed name.
using KnownMetrics = std::vector<std::pair<std::string, MetricBetter>>;

/// They are known before features have learnt anything. `has_loss`: whether evaluations have a loss, too.
KnownMetrics MetricsOfJob(const TrainerDesc& desc, const MetricRegistry& registry, bool has_loss) {
  KnownMetrics metrics;
  for (const MetricOfLoss& metric : MetricsOf(desc.model())) {
    const MetricInfo* const info = registry.Find(KindOf(desc.model().metric(metric.metric)));
    if (info != nullptr) metrics.emplace_back(metric.name, info->better);
  }
  if (has_loss) metrics.emplace_back("loss", MetricBetter::kLower);
  return metrics;
}

/// Reads and compiles the job of a trial; `*metrics` becomes what the first one's evaluations measure.
Result<TrainerDesc> JobOfTrial(const SweepRequest& request, const SweepTrial& trial, const std::stop_token& stop,
                               std::optional<KnownMetrics>* metrics) {
  MR_ASSIGN(JobAndEnvironment job, LoadJob(RequestOf(request, &trial, stop)));
  if (job.config.desc->infer()) return InvalidConfig("a sweep trains, and the job says infer: true");
  TrainerDesc desc = *job.config.desc;
  bool has_loss = true;
  // What features learn is known once the files were read: such a job is compiled when it runs, and its model looked
  // at.
  if (!NeedsStatistics(desc.data_desc())) {
    MR_ASSIGN(const auto compiled, CompiledJob::Create(std::move(job.config), job.environment, "", {}, stop));
    has_loss = !compiled->loss().empty();
  } else if (const auto mistakes = FindDeeperMistakes(desc, job.environment); !mistakes.empty()) {
    return job.config.Report(mistakes);
  }
  if (!metrics->has_value()) *metrics = MetricsOfJob(desc, job.environment.metrics, has_loss);
  return desc;
}

/// Finds the metric that is to be good among those that the jobs have.
Status ChooseMetric(const KnownMetrics& known, PlannedSweep* plan) {
  const SweepDesc& sweep = *plan->sweep.desc;
  const TrainerDesc& job = plan->jobs[0].desc;
  plan->metric = sweep.metric();
  if (plan->metric.empty() && job.eval().has_early_stopping()) plan->metric = job.eval().early_stopping().metric();
  if (plan->metric.empty()) plan->metric = job.checkpoint().keep_best();
  if (plan->metric.empty() && !known.empty()) plan->metric = known.front().first;
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const auto& metric) { return metric.first == plan->metric; });
  if (found == known.end()) {
    if (sweep.metric().empty() && !sweep.has_halving()) return Status::Ok();
    std::vector<std::string_view> names;
    for (const auto& metric : known) names.push_back(metric.first);
    const std::string hint = DidYouMean(plan->metric, names);
    return plan->sweep.Mistake("metric", "the job has no metric \"" + plan->metric + "\"" + hint +
                                             (hint.empty() ? "; it has " : " It has ") + JoinNames(names));
  }
  plan->better = found->second;
  if (!sweep.metric().empty() && !job.has_eval()) {
    return plan->sweep.Mistake("metric",
                               "metrics are those of evaluations, and the job has none: give it eval { "
                               "filelist: \"...\" }, or leave metric out");
  }
  return Status::Ok();
}

/// Where a training writes beside its output folder: fields, and what they say.
std::vector<std::pair<std::string, std::string>> PlacesOutside(const TrainerDesc& job) {
  std::vector<std::pair<std::string, std::string>> places = {
      {"program.save_dir", job.program().save_dir()},
      {"program.save_server_dir", job.program().save_server_dir()},
      {"dump_fields_path", job.dump_fields_path()},
      {"data_desc.bad_lines.quarantine_path", job.data_desc().bad_lines().quarantine_path()}};
  for (int i = 0; i < job.output().export__size(); ++i) {
    places.emplace_back("output.export[" + std::to_string(i) + "].dir", job.output().export_(i).dir());
  }
  std::erase_if(places, [](const auto& place) { return place.second.empty(); });
  return places;
}

/// Trainings that run at the same time must not write the same files.
Status CheckPlaces(const std::vector<SweepJob>& jobs, const LoadedConfig& config) {
  std::set<std::pair<std::string, std::string>> taken;
  std::map<std::string, std::string> mistakes;
  for (const SweepJob& job : jobs) {
    for (const auto& [path, place] : PlacesOutside(job.desc)) {
      if (taken.insert({path, place}).second) continue;
      mistakes[path] = "several trainings of the sweep would write to \"" + place + "\" at the same time: leave " +
                       path + " out, or make it a field of the sweep";
    }
  }
  std::vector<ConfigMistake> all;
  for (const auto& [path, message] : mistakes) all.push_back({path, message});
  return all.empty() ? Status::Ok() : config.Report(all);
}

/// The trainings of a trial, one for each seed.
void AddJobs(const TrainerDesc& desc, size_t trial, PlannedSweep* plan) {
  const SweepTrial& values = plan->sweep.trials[trial];
  const SweepDesc& sweep = *plan->sweep.desc;
  SweepJob job = {values.name, values.overrides, desc};
  if (sweep.seeds_size() == 0) {
    plan->jobs.push_back(std::move(job));
    return;
  }
  for (const uint64_t seed : sweep.seeds()) {
    SweepJob of_seed = job;
    const std::string text = "seed=" + std::to_string(seed);
    of_seed.name = values.overrides.empty() ? text : values.name + "," + text;
    of_seed.overrides.push_back(text);
    of_seed.desc.set_seed(seed);
    plan->jobs.push_back(std::move(of_seed));
  }
}

/// The jobs of a trial, one for each seed.
std::span<const SweepJob> JobsOf(const PlannedSweep& plan, size_t trial) {
  const size_t seeds = plan.jobs.size() / plan.sweep.trials.size();
  return std::span(plan.jobs).subspan(trial * seeds, seeds);
}

/// Of the jobs of a trial in a round, which is the same however many rounds follow.
std::string Fingerprint(const PlannedSweep& plan, size_t trial, int epochs) {
  XxHash64Stream hash;
  for (const SweepJob& job : JobsOf(plan, trial)) {
    TrainerDesc desc = job.desc;
    desc.set_epochs(epochs);
    const std::string bytes = desc.SerializePartialAsString();
    hash.Add(std::to_string(bytes.size()) + " " + bytes);
  }
  return std::to_string(hash.Hash());
}

void AddOverrides(const std::vector<std::string>& overrides, JsonWriter* json) {
  json->Key("overrides").BeginList();
  for (const std::string& field : overrides) json->Text(field);
  json->EndList();
}

void AddJob(const SweepJob& job, JsonWriter* json) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(job.desc, &text);
  json->BeginObject().Key("name").Text(job.name);
  AddOverrides(job.overrides, json);
  json->Key("threads").Number(std::max(1, job.desc.thread_num())).Key("epochs").Number(job.desc.epochs());
  json->Key("text").Text(text).EndObject();
}

}  // namespace

Result<PlannedSweep> PlanSweep(const SweepRequest& request, const std::stop_token& stop) {
  PlannedSweep plan;
  MR_ASSIGN(const JobAndEnvironment base, LoadJob(RequestOf(request, nullptr, stop)));
  plan.warnings = base.config.warnings;
  plan.output_dir = request.output_dir.empty() ? base.config.desc->output().dir() : request.output_dir;
  MR_ASSIGN(plan.sweep, ReadSweep(request.file, *base.config.desc));
  std::optional<KnownMetrics> metrics;
  Status first;
  size_t wrong = 0;
  for (size_t i = 0; i < plan.sweep.trials.size(); ++i) {
    if (stop.stop_requested()) return Cancelled("stopped before the sweep began");
    const SweepTrial& trial = plan.sweep.trials[i];
    const Result<TrainerDesc> desc = JobOfTrial(request, trial, stop, &metrics);
    if (desc.ok()) {
      AddJobs(*desc, i, &plan);
      continue;
    }
    if (desc.status().code() == StatusCode::kCancelled) return desc.status();
    if (++wrong == 1) first = Status(desc.status()).Context("with " + trial.name);
  }
  if (wrong > 1) {
    return Status(first.code(), first.message() + "\n" + std::to_string(wrong) + " of the " +
                                    std::to_string(plan.sweep.trials.size()) +
                                    " trials have a mistake; this is the first");
  }
  MR_TRY(std::move(first));
  MR_TRY(CheckPlaces(plan.jobs, base.config));
  MR_TRY(ChooseMetric(*metrics, &plan));
  if (plan.sweep.desc->has_halving()) {
    const SweepHalving& halving = plan.sweep.desc->halving();
    plan.rounds = HalvingEpochs(halving.first_epochs(), halving.factor(), plan.jobs[0].desc.epochs());
  }
  return plan;
}

std::string PlanAsJson(const PlannedSweep& plan) {
  const TrainerDesc& job = plan.jobs[0].desc;
  const SweepDesc& sweep = *plan.sweep.desc;
  const bool keeps_best = job.eval().has_early_stopping() || !job.checkpoint().keep_best().empty();
  JsonWriter json;
  json.BeginObject().Key("metric").Text(plan.metric).Key("better").Text(WordOf(plan.better));
  json.Key("keeps_best").Bool(keeps_best).Key("at_once").Number(sweep.at_once());
  json.Key("factor").Number(sweep.halving().factor()).Key("rounds").BeginList();
  for (const int epochs : plan.rounds) {
    json.BeginObject().Key("epochs").Number(epochs).Key("fingerprints").BeginList();
    for (size_t trial = 0; trial < plan.sweep.trials.size(); ++trial) json.Text(Fingerprint(plan, trial, epochs));
    json.EndList().EndObject();
  }
  json.EndList().Key("trials").BeginList();
  for (size_t trial = 0; trial < plan.sweep.trials.size(); ++trial) {
    json.BeginObject().Key("name").Text(plan.sweep.trials[trial].name);
    AddOverrides(plan.sweep.trials[trial].overrides, &json);
    json.Key("jobs").BeginList();
    for (const SweepJob& one : JobsOf(plan, trial)) AddJob(one, &json);
    json.EndList().EndObject();
  }
  json.EndList().EndObject();
  return json.text();
}

}  // namespace millrace
