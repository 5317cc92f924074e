#include "runs/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "config/changed_fields.h"
#include "core/number_format.h"
#include "core/shortened.h"
#include "metrics/metric_list.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

constexpr int kMetricDigits = 5;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A field in which jobs differ, with its value of each run.
struct DifferingField {
  std::string path;
  std::vector<std::string> values;
};

/// The job as it was written: slots and what is learnt of files follow from its features.
TrainerDesc AsWritten(const TrainerDesc& job) {
  TrainerDesc written = job;
  if (!written.has_data_desc()) return written;
  DataFeedDesc& data = *written.mutable_data_desc();
  data.clear_feature_states();
  if (data.feature_size() == 0) return written;
  data.mutable_multi_slot_desc()->clear_slots();
  if (!data.multi_slot_desc().has_uid_slot()) data.clear_multi_slot_desc();
  return written;
}

/// Compared with the first job that is known, field by field. Where the results go differs always and says nothing.
std::vector<DifferingField> DifferingFields(const std::vector<RunRecord>& runs) {
  std::vector<DifferingField> fields;
  const auto first = std::find_if(runs.begin(), runs.end(), [](const RunRecord& run) { return run.job != nullptr; });
  if (first == runs.end()) return fields;
  const TrainerDesc first_job = AsWritten(*first->job);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].job == nullptr) continue;
    for (const ChangedField& change : ChangedJobFields(first_job, AsWritten(*runs[i].job))) {
      if (change.path == "output.dir") continue;
      auto field = std::find_if(fields.begin(), fields.end(),
                                [&](const DifferingField& known) { return known.path == change.path; });
      if (field == fields.end()) {
        field = fields.insert(fields.end(), {change.path, std::vector<std::string>(runs.size(), change.before)});
      }
      field->values[i] = change.now;
    }
  }
  for (DifferingField& field : fields) {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].job == nullptr) field.values[i] = "?";
    }
  }
  return fields;
}

/// The names of a path; a dot within brackets is an element's.
std::vector<std::string> NamesOfPath(const std::string& path) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : path) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == '.' && depth == 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

std::string LastNames(const std::vector<std::string>& names, size_t count) {
  std::string text;
  for (size_t i = names.size() - std::min(count, names.size()); i < names.size(); ++i) {
    text += (text.empty() ? "" : ".") + names[i];
  }
  return text;
}

}  // namespace

std::vector<std::string> ShortPaths(const std::vector<std::string>& paths) {
  std::vector<std::string> shorts;
  for (const std::string& path : paths) {
    const std::vector<std::string> names = NamesOfPath(path);
    size_t count = 1;
    const auto is_taken = [&](const std::string& other) {
      return other != path && LastNames(NamesOfPath(other), count) == LastNames(names, count);
    };
    while (count < names.size() && std::any_of(paths.begin(), paths.end(), is_taken)) ++count;
    shorts.push_back(LastNames(names, count));
  }
  return shorts;
}

namespace {

/// Values that runs have under a head.
struct ValueColumn {
  std::string head;
  int digits = kMetricDigits;
  std::optional<MetricBetter> better;  ///< nullopt: none is the best
  std::vector<double> values;          ///< of each run; NaN: none
};

/// What the model that a run saved was evaluated to be: the best one, where that was kept, else the last one.
double SavedOf(const Curve* curve, int64_t model_step) {
  if (curve == nullptr || curve->points.empty()) return kUnknown;
  const auto found = std::find_if(curve->points.rbegin(), curve->points.rend(),
                                  [model_step](const CurvePoint& point) { return point.step == model_step; });
  return found != curve->points.rend() ? found->value : curve->points.back().value;
}

double BestOf(const Curve* curve, MetricBetter better) {
  double best = kUnknown;
  if (curve == nullptr) return best;
  for (const CurvePoint& point : curve->points) {
    if (std::isnan(point.value)) continue;
    if (std::isnan(best) || ScoreOf(better, point.value) > ScoreOf(better, best)) best = point.value;
  }
  return best;
}

/// Names in the order in which runs have them; the loss, which every evaluation has, behind the others.
std::vector<std::string> EvaluationNames(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    for (const Curve& curve : run.evaluations) {
      if (std::find(names.begin(), names.end(), curve.name) == names.end()) names.push_back(curve.name);
    }
  }
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return name != "loss"; });
  return names;
}

std::map<std::string, MetricBetter> BetterOfAll(const std::vector<RunRecord>& runs) {
  std::map<std::string, MetricBetter> better = {{"loss", MetricBetter::kLower}};
  for (const RunRecord& run : runs) better.insert(run.better.begin(), run.better.end());
  return better;
}

/// Of a metric on a named set ("auc@yesterday") as of the metric.
std::optional<MetricBetter> BetterOfMetric(const std::map<std::string, MetricBetter>& better, const std::string& name) {
  const auto found = better.find(name.substr(0, name.find('@')));
  return found == better.end() ? std::nullopt : std::optional<MetricBetter>(found->second);
}

/// Whether a metric on a named set is the same as the metric without a name: the set is the one that is watched.
bool IsOfWatchedSet(const std::vector<RunRecord>& runs, const std::string& name) {
  const size_t at = name.find('@');
  if (at == std::string::npos) return false;
  return std::all_of(runs.begin(), runs.end(), [&](const RunRecord& run) {
    const Curve* const named = run.Evaluation(name);
    const Curve* const plain = run.Evaluation(name.substr(0, at));
    if (named == nullptr || plain == nullptr) return named == plain;
    return std::equal(named->points.begin(), named->points.end(), plain->points.begin(), plain->points.end(),
                      [](const CurvePoint& a, const CurvePoint& b) { return a.step == b.step && a.value == b.value; });
  });
}

void AddEvaluationColumns(const std::vector<RunRecord>& runs, std::vector<ValueColumn>* columns) {
  const std::map<std::string, MetricBetter> better = BetterOfAll(runs);
  for (const std::string& name : EvaluationNames(runs)) {
    if (IsOfWatchedSet(runs, name)) continue;
    ValueColumn saved = {name, kMetricDigits, BetterOfMetric(better, name), {}};
    ValueColumn best = {name + " best", kMetricDigits, saved.better, {}};
    bool has_better = false;
    for (const RunRecord& run : runs) {
      const Curve* curve = run.Evaluation(name);
      saved.values.push_back(SavedOf(curve, run.model_step));
      best.values.push_back(saved.better.has_value() ? BestOf(curve, *saved.better) : kUnknown);
      has_better |= !std::isnan(best.values.back()) && best.values.back() != saved.values.back();
    }
    columns->push_back(std::move(saved));
    if (has_better) columns->push_back(std::move(best));
  }
}

void AddTrainingColumns(const std::vector<RunRecord>& runs, std::vector<ValueColumn>* columns) {
  const std::map<std::string, MetricBetter> better = BetterOfAll(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [name, value] : runs[i].metrics) {
      const std::string head = name + " of training";
      auto column =
          std::find_if(columns->begin(), columns->end(), [&](const ValueColumn& c) { return c.head == head; });
      if (column == columns->end()) {
        column = columns->insert(columns->end(), {head, kMetricDigits, BetterOfMetric(better, name),
                                                  std::vector<double>(runs.size(), kUnknown)});
      }
      column->values[i] = value;
    }
  }
}

std::vector<ValueColumn> ValueColumns(const std::vector<RunRecord>& runs) {
  std::vector<ValueColumn> columns = {{"steps", 0, {}, {}}, {"examples/s", 0, {}, {}}, {"seconds", 1, {}, {}}};
  for (const RunRecord& run : runs) {
    columns[0].values.push_back(static_cast<double>(run.steps));
    columns[1].values.push_back(run.examples_per_second);
    columns[2].values.push_back(run.seconds);
  }
  const bool has_evaluations =
      std::any_of(runs.begin(), runs.end(), [](const RunRecord& run) { return !run.evaluations.empty(); });
  has_evaluations ? AddEvaluationColumns(runs, &columns) : AddTrainingColumns(runs, &columns);
  return columns;
}

/// The mean over runs and its standard error; of one run its value. NaN: no run has any.
struct Mean {
  double value = kUnknown;
  double error = kUnknown;
};

Mean MeanOf(const ValueColumn& column, const std::vector<size_t>& runs) {
  std::vector<double> values;
  for (const size_t run : runs) {
    if (!std::isnan(column.values[run])) values.push_back(column.values[run]);
  }
  Mean mean;
  if (values.empty()) return mean;
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  mean.value = sum / count;
  if (values.size() < 2) return mean;
  double squares = 0;
  for (const double value : values) squares += (value - mean.value) * (value - mean.value);
  mean.error = std::sqrt(squares / (count - 1) / count);
  return mean;
}

std::string TextOf(const ValueColumn& column, const Mean& mean) {
  if (std::isnan(mean.value)) return "";
  std::string text = FixedNumber(mean.value, column.digits);
  if (column.better.has_value() && !std::isnan(mean.error)) text += " +- " + FixedNumber(mean.error, column.digits);
  return text;
}

/// The runs of each row of the first rank: those that have all fields but the seed in common.
std::vector<std::vector<size_t>> GroupsOf(const std::vector<RunRecord>& runs,
                                          const std::vector<DifferingField>& fields) {
  std::vector<std::vector<size_t>> groups;
  std::map<std::vector<std::string>, size_t> known;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> key;
    for (const DifferingField& field : fields) key.push_back(field.path == "seed" ? "" : field.values[i]);
    if (runs[i].job == nullptr) key = {"", std::to_string(i)};
    const auto [place, is_new] = known.insert({key, groups.size()});
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(i);
  }
  return groups;
}

std::string NameOf(const RunRecord& run) {
  std::string name = run.name;
  if (!run.has_ended) name += " (not ended)";
  if (run.interrupted) name += " (interrupted)";
  return name;
}

std::string CutForTable(const std::string& text) {
  constexpr size_t kLongest = 40;
  return text.size() <= kLongest ? text : std::string(StartOf(text, kLongest - 3)) + "...";
}

RunRow RowOf(const std::vector<RunRecord>& runs, const std::vector<DifferingField>& fields,
             const std::vector<ValueColumn>& columns, std::vector<size_t> group) {
  RunRow row;
  row.name = group.size() == 1 ? NameOf(runs[group[0]]) : "mean of " + std::to_string(group.size()) + " runs";
  for (const DifferingField& field : fields) {
    const bool is_of_all = group.size() == 1 || field.path != "seed";
    row.cells.push_back({is_of_all ? CutForTable(field.values[group[0]]) : "", false});
  }
  for (const ValueColumn& column : columns) row.cells.push_back({TextOf(column, MeanOf(column, group)), false});
  row.runs = std::move(group);
  return row;
}

/// Marks what is best of a column; of one row nothing is.
void MarkBest(const ValueColumn& column, size_t cell, std::vector<RunRow>* rows) {
  if (!column.better.has_value()) return;
  double best = -std::numeric_limits<double>::infinity();
  size_t count = 0;
  for (const RunRow& row : *rows) {
    const double value = MeanOf(column, row.runs).value;
    if (row.is_member || std::isnan(value)) continue;
    best = std::max(best, ScoreOf(*column.better, value));
    ++count;
  }
  if (count < 2) return;
  for (RunRow& row : *rows) {
    const double value = MeanOf(column, row.runs).value;
    row.cells[cell].is_best = !row.is_member && !std::isnan(value) && ScoreOf(*column.better, value) == best;
  }
}

Status OrderGroups(const std::vector<ValueColumn>& columns, const std::string& order_by,
                   std::vector<std::vector<size_t>>* groups) {
  if (order_by.empty()) return Status::Ok();
  std::string known;
  for (const ValueColumn& column : columns) {
    if (!column.better.has_value()) {
      if (column.head != order_by) continue;
      return InvalidConfig("which values of \"" + order_by +
                           "\" are better is not known: no run.json of the runs says so");
    }
    known += (known.empty() ? "" : ", ") + column.head;
    if (column.head != order_by) continue;
    std::stable_sort(groups->begin(), groups->end(), [&](const auto& a, const auto& b) {
      return ScoreOf(*column.better, MeanOf(column, a).value) > ScoreOf(*column.better, MeanOf(column, b).value);
    });
    return Status::Ok();
  }
  return InvalidConfig("no run has an evaluation with \"" + order_by + "\"" +
                       (known.empty() ? std::string() : "; there are " + known));
}

/// Runs of one seed are no draws of their own: a mean over them looks surer than it is.
std::string NoteOnSeeds(const std::vector<RunRecord>& runs, const std::vector<size_t>& group) {
  std::map<uint64_t, size_t> counts;
  for (const size_t run : group) ++counts[runs[run].job->seed()];
  for (const auto& [seed, count] : counts) {
    if (count == 1) continue;
    return std::to_string(count) + " runs of a mean have the same seed, " + std::to_string(seed) +
           ": its error tells less than how far seeds are apart";
  }
  return "";
}

}  // namespace

Result<RunTable> CompareRuns(const std::vector<RunRecord>& runs, const std::string& order_by) {
  const std::vector<DifferingField> fields = DifferingFields(runs);
  const std::vector<ValueColumn> columns = ValueColumns(runs);
  RunTable table;
  for (const DifferingField& field : fields) table.paths.push_back(field.path);
  table.heads = ShortPaths(table.paths);
  table.fields = fields.size();
  table.order_by = order_by;
  for (const ValueColumn& column : columns) table.heads.push_back(column.head);
  std::vector<std::vector<size_t>> groups = GroupsOf(runs, fields);
  MR_TRY(OrderGroups(columns, order_by, &groups));
  for (const std::vector<size_t>& group : groups) {
    table.rows.push_back(RowOf(runs, fields, columns, group));
    if (group.size() == 1) continue;
    if (const std::string note = NoteOnSeeds(runs, group); !note.empty()) table.notes.push_back(note);
    for (const size_t run : group) {
      table.rows.push_back(RowOf(runs, fields, columns, {run}));
      table.rows.back().is_member = true;
    }
  }
  for (size_t i = 0; i < columns.size(); ++i) MarkBest(columns[i], fields.size() + i, &table.rows);
  return table;
}

}  // namespace millrace
