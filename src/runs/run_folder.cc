#include "runs/run_folder.h"

#include <google/protobuf/text_format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string_view>

#include "core/file.h"
#include "core/plain_file.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;
using simdjson::dom::object;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kEvaluation = "eval_";

/// A number; NaN for null and for what is none.
double NumberOf(const element& value) {
  double number = kNaN;
  return value.get_double().get(number) == simdjson::SUCCESS ? number : kNaN;
}

int64_t IntegerOf(const object& line, std::string_view key) {
  int64_t number = 0;
  return line.at_key(key).get_int64().get(number) == simdjson::SUCCESS ? number : -1;
}

Curve& CurveOf(std::string_view name, std::vector<Curve>* curves) {
  const auto found =
      std::find_if(curves->begin(), curves->end(), [&](const Curve& curve) { return curve.name == name; });
  if (found != curves->end()) return *found;
  return curves->emplace_back(Curve{std::string(name), {}});
}

/// A line of metrics.jsonl: of an evaluation where it has "eval_loss", else of training. False where it is none.
bool AddLine(const object& line, RunRecord* run) {
  const int64_t step = IntegerOf(line, "step");
  if (step < 0) return false;
  run->steps = std::max(run->steps, step);
  run->examples = std::max(run->examples, IntegerOf(line, "examples"));
  const bool is_evaluation = line.at_key("eval_loss").error() == simdjson::SUCCESS;
  for (const auto& [key, value] : line) {
    if (key == "step" || key == "epoch" || key == "examples") continue;
    // What was fetched may have several values; a curve has one.
    if (value.type() == element_type::ARRAY) continue;
    const std::string_view name = is_evaluation && key.starts_with(kEvaluation) ? key.substr(kEvaluation.size()) : key;
    CurveOf(name, is_evaluation ? &run->evaluations : &run->training).points.push_back({step, NumberOf(value)});
  }
  return true;
}

Status ReadLines(const std::string& path, RunRecord* run) {
  MR_TRY(CheckPlainFile(path));
  MR_ASSIGN(const std::string text, ReadFile(path));
  simdjson::dom::parser parser;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    ++number;
    const size_t end = text.find('\n', begin);
    const bool is_cut = end == std::string::npos;
    const std::string line = text.substr(begin, is_cut ? std::string::npos : end - begin);
    begin = is_cut ? text.size() : end + 1;
    const std::string place = path + ":" + std::to_string(number);
    if (is_cut) {
      run->notes.push_back(place + ": the last line is cut, as a run that was killed leaves it: it is left out");
      continue;
    }
    object values;
    const simdjson::error_code error = parser.parse(line).get_object().get(values);
    if (error != simdjson::SUCCESS) {
      return BadData(place + ": expected an object of JSON, found \"" + line.substr(0, 40) +
                     "\": " + simdjson::error_message(error));
    }
    if (!AddLine(values, run)) {
      return BadData(place + ": a line of a run's metrics has a \"step\", found \"" + line.substr(0, 40) + "\"");
    }
  }
  return Status::Ok();
}

/// An evaluation that metrics.jsonl does not have.
void AddEvaluation(const object& eval, RunRecord* run) {
  const int64_t step = IntegerOf(eval, "step");
  if (step < 0) return;
  for (const auto& [key, value] : eval) {
    const bool is_metric = run->better.contains(std::string(key));
    if (is_metric) CurveOf(key, &run->evaluations).points.push_back({step, NumberOf(value)});
  }
}

void ReadBetter(const object& all, RunRecord* run) {
  const std::pair<std::string_view, MetricBetter> words[] = {
      {"higher", MetricBetter::kHigher}, {"lower", MetricBetter::kLower}, {"nearer_to_1", MetricBetter::kNearerToOne}};
  for (const auto& [word, better] : words) {
    simdjson::dom::array names;
    if (all.at_key(word).get_array().get(names) != simdjson::SUCCESS) continue;
    for (const element& value : names) {
      std::string_view name;
      if (value.get_string().get(name) == simdjson::SUCCESS) run->better[std::string(name)] = better;
    }
  }
}

void ReadJob(const object& all, const std::string& path, RunRecord* run) {
  std::string_view text;
  if (all.at_key("job").get_string().get(text) != simdjson::SUCCESS) {
    run->notes.push_back(path +
                         ": it has no \"job\", as builds from before wrote it: how it was configured is not known");
    return;
  }
  auto job = std::make_shared<TrainerDesc>();
  if (!google::protobuf::TextFormat::ParseFromString(std::string(text), job.get())) {
    run->notes.push_back(path +
                         ": its \"job\" is of another build, and is not read: how it was configured is not known");
    return;
  }
  run->job = std::move(job);
}

Status ReadSummary(const std::string& path, RunRecord* run) {
  MR_TRY(CheckPlainFile(path));
  MR_ASSIGN(const std::string text, ReadFile(path));
  simdjson::dom::parser parser;
  object all;
  const simdjson::error_code error = parser.parse(text).get_object().get(all);
  if (error != simdjson::SUCCESS) {
    return BadData(path +
                   ": expected an object of JSON, as the end of a run writes it: " + simdjson::error_message(error));
  }
  const auto number = [&all](std::string_view key) {
    element value;
    return all.at_key(key).get(value) == simdjson::SUCCESS ? NumberOf(value) : kNaN;
  };
  if (IntegerOf(all, "batches") < 0 || IntegerOf(all, "examples") < 0) {
    return BadData(path + ": a run's summary has \"examples\" and \"batches\"");
  }
  run->has_ended = true;
  if (run->steps > IntegerOf(all, "batches")) {
    run->notes.push_back(path + ": metrics.jsonl has step " + std::to_string(run->steps) +
                         ", which is behind its end: a run goes on in the folder, or was killed");
  }
  run->steps = std::max(run->steps, IntegerOf(all, "batches"));
  run->examples = std::max(run->examples, IntegerOf(all, "examples"));
  run->seconds = number("seconds");
  run->examples_per_second = number("examples_per_second");
  const auto is_true = [&all](std::string_view key) {
    bool value = false;
    return all.at_key(key).get_bool().get(value) == simdjson::SUCCESS && value;
  };
  run->interrupted = is_true("interrupted");
  run->stopped_early = is_true("stopped_early");
  object values;
  if (all.at_key("metrics").get_object().get(values) == simdjson::SUCCESS) {
    for (const auto& [key, value] : values) run->metrics.emplace_back(key, NumberOf(value));
  }
  if (all.at_key("better").get_object().get(values) == simdjson::SUCCESS) ReadBetter(values, run);
  ReadJob(all, path, run);
  if (all.at_key("eval").get_object().get(values) == simdjson::SUCCESS) {
    run->model_step = IntegerOf(values, "step");
    if (run->evaluations.empty()) AddEvaluation(values, run);
  }
  return Status::Ok();
}

}  // namespace

const Curve* RunRecord::Evaluation(const std::string& metric) const {
  const auto found =
      std::find_if(evaluations.begin(), evaluations.end(), [&](const Curve& curve) { return curve.name == metric; });
  return found == evaluations.end() ? nullptr : &*found;
}

Result<RunRecord> ReadRun(const std::string& folder) {
  RunRecord run;
  run.folder = folder;
  while (run.folder.size() > 1 && run.folder.ends_with('/')) run.folder.pop_back();
  run.name = run.folder;
  run.seconds = kNaN;
  run.examples_per_second = kNaN;
  std::error_code error;
  if (!std::filesystem::exists(run.folder, error)) return NotFound("no folder \"" + run.folder + "\"");
  if (!std::filesystem::is_directory(run.folder, error)) {
    return NotFound("\"" + run.folder + "\" is no folder; a run is the output folder of a training");
  }
  const std::string lines = run.folder + "/metrics.jsonl";
  const std::string summary = run.folder + "/run.json";
  const bool has_lines = std::filesystem::exists(lines, error);
  const bool has_summary = std::filesystem::exists(summary, error);
  if (!has_lines && !has_summary) {
    return NotFound("\"" + run.folder + "\" is no run: it has neither run.json nor metrics.jsonl");
  }
  if (has_lines) MR_TRY(ReadLines(lines, &run));
  if (has_summary) MR_TRY(ReadSummary(summary, &run));
  if (!has_lines) run.notes.push_back(run.folder + ": it has no metrics.jsonl: there are no curves");
  if (!has_summary) {
    run.notes.push_back(run.folder +
                        ": it has no run.json: the run has not ended, or was killed; how it was configured "
                        "is not known");
  }
  return run;
}

}  // namespace millrace
