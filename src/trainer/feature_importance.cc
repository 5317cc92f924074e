#include "trainer/feature_importance.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "config/feed_names.h"
#include "core/elapsed.h"
#include "core/hash.h"
#include "core/json_writer.h"
#include "core/numbers.h"
#include "dataset/in_memory_dataset.h"
#include "report/quality_watch.h"
#include "trainer/evaluator.h"

namespace millrace {
namespace {

struct SlotGroup {
  std::string name;
  std::vector<std::string> slots;
};

Result<std::vector<std::string>> Expand(const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    MR_ASSIGN(const std::vector<std::string> slots, ExpandSlotRange(name));
    all.insert(all.end(), slots.begin(), slots.end());
  }
  return all;
}

Result<std::vector<SlotGroup>> GroupsOf(const FeatureImportanceDesc& desc) {
  std::vector<SlotGroup> groups;
  MR_ASSIGN(const std::vector<std::string> slots, Expand(desc.slots()));
  for (const std::string& slot : slots) groups.push_back({slot, {slot}});
  for (const auto& group : desc.group()) {
    MR_ASSIGN(std::vector<std::string> together, Expand(group.slots()));
    groups.push_back({group.name(), std::move(together)});
  }
  return groups;
}

void SumUp(const ImportanceReport& report, FeatureImportance* group) {
  const auto n = static_cast<double>(group->values.size());
  std::vector<double> drops;
  for (const double value : group->values) {
    drops.push_back(ScoreOf(report.better, report.baseline) - ScoreOf(report.better, value));
  }
  group->drop = std::accumulate(drops.begin(), drops.end(), 0.0) / n;
  double squares = 0;
  for (const double drop : drops) squares += (drop - group->drop) * (drop - group->drop);
  group->deviation = std::sqrt(squares / (n - 1));
  group->error = group->deviation / std::sqrt(n);
}

/// The evaluation's text in memory, with the zeros and merged lines of the job's own dataset.
Result<std::unique_ptr<InMemoryDataset>> LoadEvaluationRows(const JobSession& session, std::stop_token stop) {
  const CompiledJob& job = session.job();
  DataFeedDesc feed = job.desc().data_desc();
  feed.set_drop_last(false);
  if (job.desc().dataset().class_name() == "QueueDataset") ForgetOwnFeed(&feed);
  InMemoryDatasetOptions options;
  options.threads = job.workers();
  const EvalSet& set = job.config().eval_sets[0];
  ChooseRowsOfSet(job.desc(), set.number, &feed);
  const DatasetSettings settings = DatasetSettings::FromDesc(job.desc(), session.draws_lines_as_before());
  options.rows = settings.ForEvaluation(job.desc(), set.number).rows;
  options.feeds = job.environment().feeds;
  options.output_dir = job.output_dir();
  MR_ASSIGN(std::unique_ptr<InMemoryDataset> rows, InMemoryDataset::Create(feed, set.files, std::move(options)));
  MR_TRY(rows->LoadIntoMemory(std::move(stop)).status());
  return rows;
}

}  // namespace

Status CheckFeatureImportance(const CompiledJob& job) {
  const FeatureImportanceDesc& desc = job.desc().feature_importance();
  if (BetterOf(job, desc.metric()).has_value()) return Status::Ok();
  return InvalidConfig("feature_importance.metric: the job does not compute \"" + desc.metric() + "\"");
}

Result<ImportanceReport> MeasureFeatureImportance(JobSession& session, std::stop_token stop) {
  const CompiledJob& job = session.job();
  const auto start = std::chrono::steady_clock::now();
  const FeatureImportanceDesc& desc = job.desc().feature_importance();
  MR_ASSIGN(const std::unique_ptr<InMemoryDataset> rows, LoadEvaluationRows(session, stop));
  MR_ASSIGN(const std::unique_ptr<Evaluator> evaluator, Evaluator::Create(session, *rows));
  ImportanceReport report;
  report.metric = desc.metric();
  report.better = BetterOf(job, desc.metric()).value_or(MetricBetter::kHigher);
  report.repeats = desc.repeats();
  MR_ASSIGN(const EvalReport baseline, evaluator->Run({}, stop));
  report.baseline = MetricOf(baseline, desc.metric());
  report.examples = baseline.examples;
  MR_ASSIGN(const std::vector<SlotGroup> groups, GroupsOf(desc));
  for (const SlotGroup& group : groups) {
    FeatureImportance importance;
    importance.name = group.name;
    for (int repeat = 0; repeat < desc.repeats(); ++repeat) {
      MR_TRY(rows->SlotsShuffle(group.slots, Mix64(job.desc().seed(), static_cast<uint64_t>(repeat)),
                                desc.candidate_size()));
      MR_ASSIGN(const EvalReport shuffled, evaluator->Run({}, stop));
      importance.values.push_back(MetricOf(shuffled, desc.metric()));
    }
    SumUp(report, &importance);
    report.groups.push_back(std::move(importance));
  }
  std::stable_sort(report.groups.begin(), report.groups.end(),
                   [](const FeatureImportance& a, const FeatureImportance& b) { return a.drop > b.drop; });
  report.seconds = SecondsSince(start);
  return report;
}

std::string ImportanceJson(const ImportanceReport& report) {
  JsonWriter json(true);
  json.BeginObject().Key("metric").Text(report.metric).Key("baseline").Number(report.baseline);
  json.Key("examples").Number(report.examples).Key("repeats").Number(report.repeats);
  json.Key("seconds").Number(report.seconds).Key("groups").BeginList();
  for (const FeatureImportance& group : report.groups) {
    json.BeginObject().Key("name").Text(group.name).Key("drop").Number(group.drop);
    json.Key("deviation").Number(group.deviation).Key("error").Number(group.error).Key("values").BeginList();
    for (const double value : group.values) json.Number(value);
    json.EndList().EndObject();
  }
  json.EndList().EndObject();
  return json.text() + "\n";
}

std::string ImportanceTable(const ImportanceReport& report) {
  size_t width = 4;
  for (const FeatureImportance& group : report.groups) width = std::max(width, group.name.size());
  std::string text = "feature importance: " + report.metric + " " + FixedNumber(report.baseline, 6) + " on " +
                     std::to_string(report.examples) + " rows; worse by, mean of " + std::to_string(report.repeats) +
                     " and its error\n";
  for (const FeatureImportance& group : report.groups) {
    text += "  " + group.name + std::string(width - group.name.size(), ' ') + "  " + FixedNumber(group.drop, 6) +
            " +- " + FixedNumber(group.error, 6) + "\n";
  }
  return text;
}

}  // namespace millrace
