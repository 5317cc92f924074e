#include "report/run_summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/json_writer.h"
#include "core/machine_memory.h"
#include "core/numbers.h"
#include "device_worker/device_worker.h"

namespace millrace {
namespace {

using Stages = std::map<std::string, double>;

void AddStages(const PassStats& stats, Stages* stages) {
  for (const auto& [stage, seconds] : stats.stage_seconds) (*stages)[stage] += seconds;
}

double Stage(const Stages& stages, const std::string& name) {
  const auto it = stages.find(name);
  return it == stages.end() ? 0 : it->second;
}

double Stage(const RunSummary& summary, const std::string& name) { return Stage(summary.stage_seconds, name); }

std::string Percent(double share) { return std::to_string(std::lround(100 * share)) + "%"; }

// A reader takes a file at a time: more of them than files have nothing to do.
std::string MoreReaders(const RunSummary& summary) {
  // A run that was stopped has not met all files.
  if (summary.interrupted) return "raise data_desc.thread_num as far as there are files";
  const int64_t files = summary.data.files;
  if (files == 1) return "split the one file into several, each of which a thread of data_desc.thread_num reads";
  return "raise data_desc.thread_num (" + std::to_string(files) + " files can be read at a time)";
}

/// "4 ranks", "1 worker".
std::string Trainers(const RunSummary& summary) {
  const bool is_dist = summary.ranks > 0;
  const int count = is_dist ? summary.ranks : summary.workers;
  std::string trainers = std::to_string(count) + (is_dist ? " rank" : " worker") + (count == 1 ? "" : "s");
  if (summary.servers > 0) trainers += ", of which " + std::to_string(summary.servers) + " served";
  return trainers;
}

/// What helps workers that share processors, before what helps otherwise; empty where they share none.
std::string FewerWorkers(const RunSummary& summary) {
  if (summary.workers <= summary.processors) return "";
  const std::string processors = std::to_string(summary.processors);
  return "have no more workers than processors (" + std::to_string(summary.workers) + " share " + processors + "), ";
}

std::string MoreWorkers(const RunSummary& summary, const std::string& otherwise) {
  if (summary.workers >= summary.processors) return FewerWorkers(summary) + otherwise;
  return (summary.ranks > 0 ? "start more ranks (" : "raise thread_num (") + std::to_string(summary.workers) + " of " +
         std::to_string(summary.processors) + " processors train)";
}

// Of workers that waited for input `wait` seconds, a `share` of their time.
std::string InputBottleneck(const RunSummary& summary, const Stages& of_passes, double wait, double share) {
  const std::string readers = MoreReaders(summary);
  const std::string in_memory =
      Stage(summary, "load") > 0 ? "" : ", or use InMemoryDataset when there are several epochs";
  const std::pair<const char*, std::string> reasons[] = {
      {"named_pipe", "who writes the pipe that is read: write it faster, or files in its place"},
      {"format", "the Python that reads Parquet or Arrow files: " + readers + in_memory},
      {"fetch", "input_commands: make them faster, " + readers + ", or copy the files once"},
      {"pipe", "pipe_command: make it faster, " + readers + ", or prepare the files once"},
      {"parse", "parsing: " + readers + in_memory},
      {"decompress", "decompression: " + readers + ", or store the files plain or as zstd"},
      {"read", "reading files: use a faster disk" + in_memory},
  };
  const auto seconds = [&](const auto& reason) { return Stage(of_passes, reason.first); };
  const auto& [stage, advice] = *std::max_element(
      std::begin(reasons), std::end(reasons), [&](const auto& a, const auto& b) { return seconds(a) < seconds(b); });
  const double most = Stage(of_passes, stage);
  // Out of rows in memory, or of binary files: by the workers themselves.
  const double batches = Stage(of_passes, "assemble") + Stage(of_passes, "copy") + Stage(of_passes, "find_rows");
  if (batches > most) {
    return "workers put batches together " + Percent(share) + " of the time: " +
           MoreWorkers(summary, "leave slots that the model does not read out of data_desc, or use a faster machine");
  }
  const std::string waited = "workers waited for input " + Percent(share) + " of the time";
  // What is read takes a part of that at least, but for rows that the program has.
  constexpr double kLittle = 0.1;
  if (most >= kLittle * wait) return waited + ", mostly on " + advice;
  return summary.ranks < 2 ? waited
                           : waited +
                                 ", mostly for other ranks, which meet at checkpoints and evaluations: have these "
                                 "less often (checkpoint.every_steps, eval.every_steps)";
}

// One sentence: where the time went, and what to change. `of_passes` leaves out what loading into memory took.
std::string Bottleneck(const RunSummary& summary, const Stages& of_passes) {
  if (summary.run_batches == 0 && summary.examples > 0 && !summary.interrupted) {
    const std::string finished = "nothing was trained: the run that this one went on from was ";
    return finished +
           (summary.stopped_early ? "stopped early; raise eval.early_stopping.patience"
                                  : "finished; raise epochs (or add a pass of incremental)") +
           " to train on, or begin anew by --resume=never";
  }
  if (summary.run_batches == 0) return "nothing was trained";
  // Workers stand still for these, which is in none of the shares below. Of a second or less there is nothing to gain.
  const double load = Stage(summary, "load");
  const double checkpoint = Stage(summary, "checkpoint");
  const double eval = Stage(summary, "eval");
  const double whole = load + checkpoint + eval + summary.seconds;
  if (checkpoint > std::max(1.0, whole / 2)) {
    return "checkpoints took " + Percent(checkpoint / whole) +
           " of the time: raise checkpoint.every_steps, every_minutes or every_epochs";
  }
  if (eval > std::max(1.0, whole / 2)) {
    return "evaluations took " + Percent(eval / whole) +
           " of the time: raise eval.every_steps or every_epochs, or evaluate on fewer lines";
  }
  if (summary.feeds_itself) {
    const bool is_one = summary.workers == 1;
    return (is_one ? "one thread" : std::to_string(summary.workers) + " threads") +
           " computed and took what readers had: where " + (is_one ? "it waits" : "they wait") +
           " for them, raise thread_num of open_files and read ahead by create_double_buffer_reader";
  }
  const int trainers = summary.ranks - summary.servers;
  const int64_t files = summary.data.files;
  if (summary.ranks > 1 && !summary.interrupted && files > 0 && files < trainers && Stage(summary, "shuffle") == 0) {
    return std::to_string(trainers - files) + " of " + std::to_string(trainers) +
           " ranks had no file: split the input into as many as there are ranks, or several times as many";
  }
  const double wait = Stage(summary, "read_wait");
  const double compute = Stage(summary, "compute");
  const double exchange = Stage(summary, "exchange");
  const double busy = wait + compute + exchange;
  const double share = busy > 0 ? wait / busy : 0;
  if (load > 2 * summary.seconds) {
    return "loading into memory took " + Percent(load / (load + summary.seconds)) +
           " of the time: " + MoreReaders(summary) +
           (summary.epochs > 1 ? "" : ", or train with QueueDataset, which reads while it trains");
  }
  if (share > 0.2) return InputBottleneck(summary, of_passes, wait, share);
  if (summary.ranks > 1 && exchange > 0.3 * busy) {
    return "ranks waited for each other " + Percent(exchange / busy) + " of the time: " + FewerWorkers(summary) +
           "give each as many lines, raise data_desc.batch_size, or use a faster network";
  }
  const bool is_dist = summary.ranks > 0;
  return (is_dist ? "ranks computed " + Percent(compute / busy) : "workers computed " + Percent(1 - share)) +
         " of the time: " +
         MoreWorkers(summary, "make the model smaller, set precision: BF16 where the processor has it, or use " +
                                  std::string(is_dist ? "more machines" : "a faster machine"));
}

void AppendValues(JsonWriter* json, const MetricValues& values) {
  for (const auto& [name, value] : values) json->Key(name).Number(value);
}

// What came before is not in the seconds that follow.
std::string OfThisRun(const RunSummary& summary) {
  if (summary.run_examples == summary.examples) return "";
  return std::to_string(summary.run_examples) + " examples in this run, ";
}

// What was loaded before is not in those seconds either.
std::string LoadingLine(const RunSummary& summary) {
  const double seconds = Stage(summary, "load");
  if (seconds < 0.05) return "";
  return "  loading     " + FixedNumber(seconds, 1) + " s before that, which examples/s leaves out\n";
}

std::string ValuesLine(const MetricValues& values, const MetricRemarks& remarks) {
  std::string line;
  for (const auto& [name, value] : values) {
    line += (line.empty() ? "" : "  ") + name + " " + MetricText(name, value, remarks.bounds);
  }
  return line;
}

std::string RemarksText(const MetricRemarks& remarks) {
  std::string text;
  for (const auto& [once, line] : remarks.lines) text += "              " + line + "\n";
  return text;
}

void AppendRemarks(JsonWriter* json, const MetricRemarks& remarks) {
  if (!remarks.bounds.empty()) {
    json->Key("metric_bounds").BeginObject();
    AppendValues(json, remarks.bounds);
    json->EndObject();
  }
  if (remarks.lines.empty()) return;
  json->Key("metric_remarks").BeginList();
  for (const auto& [once, line] : remarks.lines) json->Text(line);
  json->EndList();
}

// Values that were taken as they are and are seldom meant: they end as NaN in the model.
std::string OddValuesLine(const std::map<std::string, int64_t>& counters) {
  const auto count = [&counters](const char* kind) {
    const auto found = counters.find(kind);
    return found == counters.end() ? 0 : found->second;
  };
  if (count("non_finite") == 0) return "";
  return "  odd values  " + std::to_string(count("non_finite")) +
         " nan or infinite ones in float slots; data_desc.non_finite: REJECT_NON_FINITE makes bad lines of them\n";
}

// Why there is a "nan" that everybody asks about.
std::string NoAucLine(const MetricValues& values, int64_t non_finite_rows, const char* of_what) {
  if (non_finite_rows > 0) {
    return "              nan: of " + std::to_string(non_finite_rows) + " examples" + of_what +
           " the prediction or the label is NaN or infinite\n";
  }
  const bool has_none = std::any_of(values.begin(), values.end(), [](const auto& metric) {
    const std::string_view name = metric.first;  // "income/auc"
    return name.substr(name.rfind('/') + 1).starts_with("auc") && std::isnan(metric.second);
  });
  return has_none ? "              no auc: all labels" + std::string(of_what) + " are of one class\n" : "";
}

// What a program's last batch gave: a job of few batches prints nothing before.
std::string FetchedLine(const RunSummary& summary) {
  if (!summary.is_program || summary.run_batches == 0) return "";
  if (summary.fetched.empty()) {
    return "  last batch  fetch_config names nothing to show: fetch_config { fetch_var_names: \"LOSS\" }\n";
  }
  std::string text = "  last batch";
  constexpr size_t kShown = 4;
  for (const FetchLine::Value& value : summary.fetched) {
    text += "  " + value.label;
    for (size_t i = 0; i < std::min(value.values.size(), kShown); ++i) text += " " + FixedNumber(value.values[i], 6);
    if (value.values.size() > kShown) text += " ... (" + std::to_string(value.values.size()) + " values)";
    if (value.values.empty()) text += " (no value)";
  }
  return text + "\n";
}

void AppendFetched(JsonWriter* json, const std::vector<FetchLine::Value>& fetched) {
  if (fetched.empty()) return;
  json->Key("fetched").BeginObject();
  for (const FetchLine::Value& value : fetched) {
    json->Key(value.name);
    if (value.values.size() == 1) {
      json->Number(value.values[0]);
      continue;
    }
    json->BeginList();
    for (const double number : value.values) json->Number(number);
    json->EndList();
  }
  json->EndObject();
}

// Lines that were left out: how many, what was wrong with the first, and where they are.
std::string BadLinesText(const PassStats& data, const char* of_what) {
  if (data.bad_lines == 0) return "";
  std::string text = "  bad lines   " + std::to_string(data.bad_lines) + " of " + std::to_string(data.lines) + of_what +
                     " left out" + (data.first_bad_lines.empty() ? "" : "; the first:") + "\n";
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(data.first_bad_lines.size(), kShown); ++i) {
    text += "              " + data.first_bad_lines[i] + "\n";
  }
  if (!data.quarantine_path.empty()) text += "              all of them: " + data.quarantine_path + "\n";
  return text;
}

// Values, lines and rows that a setting left out.
std::string LeftOutText(const PassStats& data, const char* of_what) {
  std::string text;
  for (const std::string& clause : LeftOut(data)) text += "  left out    " + clause + of_what + "\n";
  return text;
}

std::string OddLabelsLine(const LabelRangeCount& odd, const char* what) {
  if (odd.count == 0) return "";
  return "  odd labels  " + std::to_string(odd.count) + " " + what + ", the first: " + odd.first + "\n";
}

void AppendBadLines(JsonWriter* json, const PassStats& data) {
  if (data.bad_lines == 0) return;
  json->Key("first_bad_lines").BeginList();
  for (const std::string& line : data.first_bad_lines) json->Text(line);
  json->EndList();
  if (!data.quarantine_path.empty()) json->Key("quarantine_path").Text(data.quarantine_path);
}

// "rank 2 (host b)".
std::string RankName(const RunSummary& summary, size_t rank) {
  return "rank " + std::to_string(rank) + " (" + summary.per_rank[rank].host + ")";
}

// The rank that trained least, or, in step, that waited least for the others, and the one with the most rows.
std::string RanksText(const RunSummary& summary) {
  const std::vector<RankFigures>& ranks = summary.per_rank;
  if (ranks.size() < 2) return "";
  const auto trainers = ranks.begin() + std::max<int64_t>(1, summary.ranks - summary.servers);
  const bool is_in_step =
      std::any_of(ranks.begin(), trainers, [](const RankFigures& rank) { return rank.exchange_seconds > 0; });
  const auto slowest = std::min_element(ranks.begin(), trainers, [&](const RankFigures& a, const RankFigures& b) {
    return is_in_step ? a.exchange_seconds < b.exchange_seconds : a.examples < b.examples;
  });
  std::string text = "  slowest     " + RankName(summary, static_cast<size_t>(slowest - ranks.begin())) + ": " +
                     std::to_string(slowest->examples) + " examples, " + FixedNumber(slowest->read_seconds, 1) +
                     " s waiting for input, " + FixedNumber(slowest->run_seconds, 1) + " s computing" +
                     (is_in_step ? ", " + FixedNumber(slowest->exchange_seconds, 1) + " s waiting for ranks" : "") +
                     "\n";
  const auto fullest = std::max_element(
      ranks.begin(), ranks.end(), [](const RankFigures& a, const RankFigures& b) { return a.row_bytes < b.row_bytes; });
  if (fullest->rows == 0) return text;
  return text + "  fullest     " + RankName(summary, static_cast<size_t>(fullest - ranks.begin())) + ": " +
         std::to_string(fullest->rows) + " rows in " + std::to_string(fullest->row_bytes >> 20) + " MB, peak memory " +
         std::to_string(fullest->peak_rss_bytes >> 20) + " MB\n";
}

void AppendRanks(JsonWriter* json, const RunSummary& summary) {
  if (summary.ranks == 0) return;
  json->Key("dist").BeginObject().Key("ranks").Number(summary.ranks).Key("servers").Number(summary.servers);
  json->Key("wire_bytes").Number(summary.wire_bytes);
  const auto examples = static_cast<double>(summary.run_examples);
  json->Key("bytes_per_example").Number(examples > 0 ? static_cast<double>(summary.wire_bytes) / examples : 0);
  const RankPushes& pushes = summary.pushes;
  json->Key("pushes").Number(pushes.sent).Key("pushes_applied").Number(pushes.applied);
  json->Key("staleness").BeginObject().Key("mean");
  json->Number(pushes.applied > 0 ? static_cast<double>(pushes.late) / static_cast<double>(pushes.applied) : 0);
  json->Key("max").Number(pushes.latest).EndObject();
  json->Key("restarts").Number(summary.restarts).Key("recovery_seconds").Number(summary.recovery_seconds);
  json->Key("replayed").Number(summary.replayed);
  json->Key("per_rank").BeginList();
  for (const RankFigures& rank : summary.per_rank) {
    json->BeginObject().Key("host").Text(rank.host).Key("examples").Number(rank.examples);
    json->Key("rows").Number(rank.rows).Key("row_bytes").Number(rank.row_bytes);
    json->Key("read_wait_seconds").Number(rank.read_seconds).Key("compute_seconds").Number(rank.run_seconds);
    json->Key("exchange_seconds").Number(rank.exchange_seconds);
    json->Key("peak_rss_bytes").Number(rank.peak_rss_bytes).EndObject();
  }
  json->EndList().EndObject();
}

void AppendOddLabels(JsonWriter* json, const char* key, const LabelRangeCount& odd) {
  if (odd.count == 0) return;
  json->Key(key).BeginObject().Key("count").Number(odd.count).Key("first").Text(odd.first).EndObject();
}

std::string CalibrationsText(const Calibrations& calibrations) {
  std::string text;
  for (const TaskCalibration& task : calibrations.tasks) {
    const CalibrationFit& fit = task.fit;
    text += "  calibrated  " + (task.loss.empty() ? "" : task.loss + ": ");
    if (!task.failure.empty()) {
      text += "not: of the evaluation's examples " + task.failure + "\n";
      continue;
    }
    text += task.is_isotonic ? "by " + std::to_string(fit.points.size()) + " points"
                             : "slope " + FixedNumber(static_cast<double>(fit.slope), 4) + ", intercept " +
                                   FixedNumber(fit.intercept_at_0(), 4);
    text += ": logloss " + FixedNumber(fit.before.logloss, 6) + " -> " + FixedNumber(fit.after.logloss, 6) +
            ", calibration " + FixedNumber(fit.before.calibration, 6) + " -> " + FixedNumber(fit.after.calibration, 6) +
            "\n";
    if (fit.slope < 0) {
      text += "              the slope is negative: predictions rise where labels fall; look at label and evaluation\n";
    }
  }
  return text;
}

void AppendEval(JsonWriter* json, const EvalReport& eval) {
  json->Key("examples").Number(eval.examples).Key("loss").Number(eval.loss);
  AppendValues(json, eval.metrics);
  if (eval.non_finite_rows > 0) json->Key("non_finite_rows").Number(eval.non_finite_rows);
  AppendRemarks(json, eval.remarks);
  if (eval.data.bad_lines > 0) json->Key("bad_lines").Number(eval.data.bad_lines);
  AppendBadLines(json, eval.data);
}

void AppendCalibrationError(JsonWriter* json, const char* key, const CalibrationError& nearness) {
  json->Key(key).BeginObject().Key("logloss").Number(nearness.logloss);
  json->Key("calibration").Number(nearness.calibration).EndObject();
}

void AppendCalibrations(JsonWriter* json, const Calibrations& calibrations) {
  json->Key("calibrations").BeginList();
  for (const TaskCalibration& task : calibrations.tasks) {
    json->BeginObject();
    if (!task.loss.empty()) json->Key("loss").Text(task.loss);
    json->Key("kind").Text(task.is_isotonic ? "ISOTONIC" : "PLATT").Key("examples").Number(task.examples);
    if (!task.failure.empty()) {
      json->Key("failure").Text(task.failure).EndObject();
      continue;
    }
    if (task.is_isotonic) {
      json->Key("points").Number(static_cast<int64_t>(task.fit.points.size()));
    } else {
      json->Key("slope").Number(static_cast<double>(task.fit.slope));
      json->Key("intercept").Number(task.fit.intercept_at_0());
    }
    AppendCalibrationError(json, "before", task.fit.before);
    AppendCalibrationError(json, "after", task.fit.after);
    json->EndObject();
  }
  json->EndList();
}

/// A list of texts, where there are any.
void AppendTexts(JsonWriter* json, const char* key, const std::vector<std::string>& failures) {
  if (failures.empty()) return;
  json->Key(key).BeginList();
  for (const std::string& failure : failures) json->Text(failure);
  json->EndList();
}

}  // namespace

RunSummary Summarize(const RunReport& report, int workers, double total_seconds, const RanksOfRun& ranks) {
  RunSummary summary;
  summary.ranks = ranks.count;
  summary.servers = ranks.servers;
  summary.processors = ranks.processors > 0 ? ranks.processors : static_cast<int>(UsableProcessors().size());
  if (summary.processors == 0) summary.processors = workers;  // the system does not say
  summary.workers = workers;
  summary.feeds_itself = report.feeds_itself;
  summary.total_seconds = total_seconds;
  summary.examples = report.state.examples;
  summary.batches = report.state.step;
  summary.epochs = report.state.epoch;
  summary.interrupted = report.interrupted;
  summary.is_unsound = report.is_unsound;
  summary.unsaved_operator = report.unsaved_operator;
  summary.saved_step = report.saved_step;
  summary.unsaved_seconds = report.unsaved_seconds;
  summary.seconds_to_save = report.seconds_to_save;
  summary.stopped_early = report.stopped_early;
  summary.data = report.load.lines > 0 ? report.load : report.state.data;
  AddStages(report.load, &summary.stage_seconds);
  Stages of_passes;
  for (const PassReport& pass : report.passes) {
    summary.run_examples += pass.examples;
    summary.run_batches += pass.batches;
    summary.seconds += pass.seconds;
    summary.stage_seconds["read_wait"] += pass.read_seconds;
    summary.stage_seconds["compute"] += pass.run_seconds;
    if (pass.exchange_seconds > 0) summary.stage_seconds["exchange"] += pass.exchange_seconds;
    AddStages(pass.data, &summary.stage_seconds);
    AddStages(pass.data, &of_passes);
    summary.loss = pass.loss;
    summary.metrics = pass.metrics;
    summary.non_finite_rows = pass.non_finite_rows;
    summary.remarks = pass.remarks;
    summary.fetched = pass.fetched;
    if (pass.data.lines > summary.data.lines) summary.data = pass.data;
  }
  if (report.load.files > 0 && !report.passes.empty()) {
    // Rows were counted when they were loaded, those of batches that are not handed out in the pass.
    summary.data.counters.insert(report.passes.back().data.counters.begin(), report.passes.back().data.counters.end());
  }
  if (report.passes.empty()) summary.metrics = report.state.last_metrics;
  if (report.load_seconds > 0) summary.stage_seconds["load"] = report.load_seconds;
  if (report.checkpoint_seconds > 0) summary.stage_seconds["checkpoint"] = report.checkpoint_seconds;
  for (const EvalReport& eval : report.evaluations) {
    summary.stage_seconds["eval"] += eval.seconds;
    summary.eval = eval;
    summary.has_eval = true;
  }
  if (report.is_best_restored && report.best_evaluation.has_value()) {
    summary.eval = *report.best_evaluation;
    summary.has_eval = true;
    summary.is_best_model = true;
  }
  summary.peak_rss_bytes = PeakMemory();
  summary.bottleneck = Bottleneck(summary, of_passes);
  return summary;
}

std::string RunJson(const RunSummary& summary) {
  JsonWriter json(true);
  json.BeginObject();
  json.Key("examples").Number(summary.examples).Key("seconds").Number(summary.seconds);
  json.Key("examples_per_second").Number(summary.examples_per_second());
  json.Key("batches").Number(summary.batches).Key("epochs").Number(summary.epochs);
  json.Key("run_examples").Number(summary.run_examples).Key("run_batches").Number(summary.run_batches);
  json.Key("metrics").BeginObject();
  AppendValues(&json, summary.metrics);
  json.EndObject();
  if (summary.non_finite_rows > 0) json.Key("non_finite_rows").Number(summary.non_finite_rows);
  AppendRemarks(&json, summary.remarks);
  AppendFetched(&json, summary.fetched);
  json.Key("eval").BeginObject();
  if (summary.has_eval) {
    json.Key("step").Number(summary.eval.step).Key("epoch").Number(summary.eval.epoch);
    if (!summary.eval.set.empty()) json.Key("set").Text(summary.eval.set);
    AppendEval(&json, summary.eval);
  }
  json.EndObject();
  if (!summary.eval.set.empty() || !summary.eval.others.empty()) {
    json.Key("eval_sets").BeginObject();
    const auto append = [&json](const EvalReport& set) {
      json.Key(set.set).BeginObject();
      AppendEval(&json, set);
      json.EndObject();
    };
    if (!summary.eval.set.empty()) append(summary.eval);
    for (const EvalReport& other : summary.eval.others) append(other);
    json.EndObject();
  }
  if (summary.calibrations != nullptr) AppendCalibrations(&json, *summary.calibrations);
  json.Key("data").BeginObject();
  json.Key("files").Number(summary.data.files).Key("bytes").Number(summary.data.bytes);
  json.Key("lines").Number(summary.data.lines).Key("bad_lines").Number(summary.data.bad_lines);
  AppendBadLines(&json, summary.data);
  json.Key("counters").BeginObject();
  for (const auto& [kind, count] : summary.data.counters) json.Key(kind).Number(count);
  json.EndObject().EndObject().Key("stage_seconds").BeginObject();
  for (const auto& [stage, seconds] : summary.stage_seconds) json.Key(stage).Number(seconds);
  json.EndObject();
  json.Key("total_seconds").Number(summary.total_seconds).Key("workers").Number(summary.workers);
  AppendRanks(&json, summary);
  json.Key("peak_rss_bytes").Number(summary.peak_rss_bytes);
  const bool is_ended = summary.is_ended_by_callback;
  json.Key("interrupted").Bool(summary.interrupted && !is_ended);
  json.Key("stopped_early").Bool(summary.stopped_early || is_ended);
  if (summary.odd_loss_labels.count + summary.odd_metric_labels.count > 0) {
    json.Key("odd_labels").BeginObject();
    AppendOddLabels(&json, "loss", summary.odd_loss_labels);
    AppendOddLabels(&json, "metrics", summary.odd_metric_labels);
    json.EndObject();
  }
  AppendTexts(&json, "weightless_losses", summary.weightless_losses);
  if (summary.non_finite_losses.count > 0) {
    json.Key("non_finite_losses").BeginObject();
    json.Key("count").Number(summary.non_finite_losses.count).Key("first").Text(summary.non_finite_losses.first);
    json.EndObject();
  }
  AppendTexts(&json, "save_failures", summary.save_failures);
  AppendTexts(&json, "export_failures", summary.export_failures);
  json.Key("bottleneck").Text(summary.bottleneck);
  if (!summary.job.empty()) {
    json.Key("better").BeginObject();
    for (const MetricBetter better : {MetricBetter::kHigher, MetricBetter::kLower, MetricBetter::kNearerToOne}) {
      json.Key(WordOf(better)).BeginList();
      for (const auto& [name, of_metric] : summary.better) {
        if (of_metric == better) json.Text(name);
      }
      json.EndList();
    }
    json.EndObject().Key("job").Text(summary.job);
  }
  json.EndObject();
  return json.text() + "\n";
}

std::string ClosingBlock(const RunSummary& summary, const std::string& output_dir) {
  const char* what = summary.is_ended_by_callback ? "stopped by a callback"
                     : summary.interrupted        ? "interrupted"
                     : summary.stopped_early      ? "stopped early"
                     : summary.infer              ? "inferred"
                                                  : "trained";
  std::string text = std::string(what) + ": " + std::to_string(summary.examples) + " examples in " +
                     std::to_string(summary.batches) + " batches, " + OfThisRun(summary) +
                     FixedNumber(summary.seconds, 1) + " s, " + FixedNumber(summary.examples_per_second(), 0) +
                     " examples/s, " + Trainers(summary) + "\n";
  text += LoadingLine(summary);
  if (const MetricValues shown = WithLoss(summary.loss, summary.metrics); !shown.empty()) {
    text += (summary.infer ? "  metrics     " : "  training    ") + ValuesLine(shown, summary.remarks) + "\n";
  }
  text += NoAucLine(summary.metrics, summary.non_finite_rows, "") + RemarksText(summary.remarks);
  text += FetchedLine(summary);
  if (summary.has_eval) {
    text += "  evaluation  " + ValuesLine(WithLoss(summary.eval.loss, summary.eval.metrics), summary.eval.remarks);
    if (!summary.eval.set.empty()) text += "  of " + summary.eval.set;
    if (summary.is_best_model) text += "  (the best, after step " + std::to_string(summary.eval.step) + ": kept)";
    text += "\n" + NoAucLine(summary.eval.metrics, summary.eval.non_finite_rows, " of the evaluation") +
            RemarksText(summary.eval.remarks);
    for (const EvalReport& other : summary.eval.others) {
      text += "  evaluation  " + ValuesLine(WithLoss(other.loss, other.metrics), other.remarks) + "  of " +
              (other.set.empty() ? "eval.filelist" : other.set) + "\n" +
              NoAucLine(other.metrics, other.non_finite_rows, " of that set") + RemarksText(other.remarks);
    }
  }
  if (summary.calibrations != nullptr) text += CalibrationsText(*summary.calibrations);
  text += BadLinesText(summary.data, "");
  text += BadLinesText(summary.eval.data, " of the evaluation");
  text += LeftOutText(summary.data, "");
  text += LeftOutText(summary.eval.data, " of the evaluation");
  text += OddValuesLine(summary.data.counters);
  text += OddLabelsLine(summary.odd_loss_labels, "outside 0 to 1, which the log loss takes");
  text += OddLabelsLine(summary.odd_metric_labels, "that a metric is not defined for");
  for (const std::string& loss : summary.weightless_losses) {
    text += "  weights     of all examples are 0 for " + (loss == "loss" ? "the loss" : "loss \"" + loss + "\"") +
            ": nothing was learnt from it; look at its mask and its sample_weight\n";
  }
  if (summary.non_finite_losses.count > 0) {
    text += "  losses      of " + std::to_string(summary.non_finite_losses.count) +
            " batches were NaN or infinite, the first: " + summary.non_finite_losses.first + "\n";
  }
  for (const auto* failures : {&summary.save_failures, &summary.export_failures}) {
    for (const std::string& failure : *failures) text += "  failed      " + failure + "\n";
  }
  if (summary.is_unsound) {
    text +=
        "  stopped     within a batch that changes parameters or states: only the checkpoints of before can be gone on "
        "from\n";
  }
  if (summary.interrupted && !summary.unsaved_operator.empty()) {
    text += "  stopped     without a checkpoint: what gives \"" + summary.unsaved_operator +
            "\" does not say how far it was read\n";
  }
  text += RanksText(summary);
  text += "  bottleneck  " + summary.bottleneck + "\n";
  if (!output_dir.empty()) text += "  output      " + output_dir + "\n";
  const bool has_checkpoint = !output_dir.empty() && !summary.infer && !summary.is_unsound &&
                              summary.unsaved_operator.empty() && summary.batches > 0;
  if (!summary.interrupted || !has_checkpoint) return text;
  if (summary.unsaved_seconds > 0) {
    text += "  not saved   the last " + std::to_string(summary.batches - summary.saved_step) + " batches, " +
            FixedNumber(summary.unsaved_seconds, 1) + " s: to save them would have taken about " +
            FixedNumber(summary.seconds_to_save, 1) + " s\n";
    if (summary.saved_step == 0) return text;
  }
  text += "  go on       with --resume=auto\n";
  return text;
}

}  // namespace millrace
