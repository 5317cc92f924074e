#include "trainer/run_recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "core/json_writer.h"

namespace millrace {
namespace {

double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The lines of an earlier run up to `step`; a line that the run did not finish is dropped.
std::string LinesUpTo(std::string_view text, int64_t step) {
  std::string kept;
  constexpr std::string_view kStart = "{\"step\":";
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    int64_t line_step = INT64_MAX;
    if (line.starts_with(kStart)) std::from_chars(line.data() + kStart.size(), line.data() + line.size(), line_step);
    if (line_step <= step) kept += line;
  }
  return kept;
}

void BeginLine(JsonWriter* json, int64_t step, int64_t epoch, int64_t examples) {
  json->BeginObject().Key("step").Number(step).Key("epoch").Number(epoch).Key("examples").Number(examples);
}

}  // namespace

Result<std::unique_ptr<RunRecorder>> RunRecorder::Create(const Job& job, int64_t resumed_step, std::FILE* terminal,
                                                         const std::stop_token& stop) {
  std::unique_ptr<RunRecorder> recorder(
      new RunRecorder(EstimateLines(job.FilesOfPass(0), stop), ProgressLine::DetectOptions(terminal)));
  recorder->terminal_ = terminal;
  const std::string& folder = job.output_dir();
  if (folder.empty()) return recorder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return IoError("cannot make the folder \"" + folder + "\": " + error.message());
  recorder->path_ = folder + (job.desc().infer() ? "/infer.jsonl" : "/metrics.jsonl");
  recorder->resumed_step_ = resumed_step;
  if (resumed_step < 0) MR_TRY(recorder->OpenLines(""));
  if (job.desc().output().tensorboard() && !job.desc().infer()) {
    MR_ASSIGN(recorder->events_, EventWriter::Create(folder + "/tensorboard"));
  }
  return recorder;
}

RunRecorder::~RunRecorder() { progress_.Clear(); }

Status RunRecorder::GoOn() {
  if (path_.empty()) return Status::Ok();
  const Result<std::string> before = ReadFile(path_);
  return OpenLines(before.ok() ? LinesUpTo(*before, resumed_step_) : "");
}

Status RunRecorder::OpenLines(const std::string& kept) {
  MR_TRY(WriteFileAtomically(path_, kept));
  metrics_ = FileDescriptor(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  return metrics_.is_open() ? Status::Ok() : IoErrorFromErrno("cannot open \"" + path_ + "\"", errno);
}

void RunRecorder::OnTick(const RunProgress& progress) {
  const std::lock_guard lock(mutex_);
  progress_.Show(progress, expected_examples_, estimated_);
}

Status RunRecorder::OnFetch(const FetchLine& line) {
  const std::lock_guard lock(mutex_);
  JsonWriter json;
  BeginLine(&json, line.step, line.epoch, line.examples);
  std::vector<Scalar> scalars;
  for (const FetchLine::Value& value : line.values) {
    json.Key(value.name);
    if (value.values.size() == 1) {
      json.Number(value.values[0]);
      scalars.emplace_back("train/" + value.name, value.values[0]);
      continue;
    }
    json.BeginList();
    for (const double number : value.values) json.Number(number);
    json.EndList();
  }
  json.EndObject();
  MR_TRY(AppendLine(json.text()));
  return AddEvents(line.step, scalars);
}

Status RunRecorder::OnEval(const EvalReport& report) {
  const std::lock_guard lock(mutex_);
  JsonWriter json;
  BeginLine(&json, report.step, report.epoch, report.trained_examples);
  std::vector<Scalar> scalars = {{"eval/loss", report.loss}};
  json.Key("eval_loss").Number(report.loss);
  std::string text = "evaluation after step " + std::to_string(report.step) + ":";
  for (const auto& [name, value] : report.metrics) {
    json.Key("eval_" + name).Number(value);
    scalars.emplace_back("eval/" + name, value);
    char number[32];
    std::snprintf(number, sizeof(number), "%.6f", value);
    text += " " + name + " " + number;
  }
  json.EndObject();
  progress_.Clear();
  std::fprintf(terminal_, "%s (%lld examples, %.1f s)\n", text.c_str(), static_cast<long long>(report.examples),
               report.seconds);
  MR_TRY(AppendLine(json.text()));
  return AddEvents(report.step, scalars);
}

Status RunRecorder::OnPass(const PassReport& report) {
  const std::lock_guard lock(mutex_);
  progress_.Clear();
  const double rate = report.seconds > 0 ? static_cast<double>(report.examples) / report.seconds : 0;
  std::string text = "epoch " + std::to_string(report.epoch + 1) + ": " + std::to_string(report.examples) + " examples";
  for (const auto& [name, value] : report.metrics) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.6f", value);
    text += ", " + name + " " + number;
  }
  std::fprintf(terminal_, "%s, %.0f examples/s\n", text.c_str(), rate);
  if (report.data.rows > 0) {
    expected_examples_ = report.data.rows;
    estimated_ = false;
  }
  return Status::Ok();
}

void RunRecorder::ClearProgress() {
  const std::lock_guard lock(mutex_);
  progress_.Clear();
}

Status RunRecorder::AppendLine(const std::string& line) {
  if (!metrics_.is_open()) return Status::Ok();
  return WriteAll(metrics_, line + "\n", path_);
}

Status RunRecorder::AddEvents(int64_t step, const std::vector<Scalar>& scalars) {
  if (events_ == nullptr) return Status::Ok();
  return events_->AddScalars(step, SecondsSince1970(), scalars);
}

}  // namespace millrace
