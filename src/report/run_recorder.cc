#include "report/run_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "config/feed_names.h"
#include "core/json_writer.h"
#include "core/numbers.h"
#include "core/replace_folder.h"
#include "core/terminal.h"
#include "core/words.h"
#include "report/batch_observers.h"

namespace millrace {
namespace {

double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// What an earlier run wrote into metrics.jsonl.
struct EarlierLines {
  std::string text;
  int64_t point_step = -1;  ///< of the last line of training; -1: there is none
  std::string evaluation;   ///< the last line of an evaluation; empty: there is none
};

// Those up to `step`; a line that the run did not finish is dropped.
EarlierLines LinesUpTo(std::string_view text, int64_t step) {
  constexpr std::string_view kStart = "{\"step\":";
  EarlierLines kept;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    int64_t line_step = INT64_MAX;
    if (line.starts_with(kStart)) std::from_chars(line.data() + kStart.size(), line.data() + line.size(), line_step);
    if (line_step > step) continue;
    kept.text.append(line).append("\n");
    if (line.find("\"eval_loss\":") == std::string_view::npos) {
      kept.point_step = line_step;
    } else {
      kept.evaluation = line;
    }
  }
  return kept;
}

/// What a line of metrics.jsonl is of, but for its epoch, as a model stands at the end of one and at the begin of the
/// next, and for values: sums of ranks differ in their last digits from one measurement to the next.
std::string MeasuredIn(const std::string& line) {
  std::string measured;
  for (size_t begin = 0; begin < line.size(); begin = line.find(',', begin + 1)) {
    const std::string_view field = std::string_view(line).substr(begin + 1, line.find(',', begin + 1) - begin - 1);
    if (field.starts_with("\"epoch\":")) continue;
    measured += field.substr(0, field.starts_with("\"eval_") ? field.rfind(':') : field.size());
  }
  return measured;
}

void BeginLine(JsonWriter* json, int64_t step, int64_t epoch, int64_t examples) {
  json->BeginObject().Key("step").Number(step).Key("epoch").Number(epoch).Key("examples").Number(examples);
}

void PrintFetched(const std::string& text) {
  const bool failed_before = std::ferror(stdout) != 0;
  const bool is_printed = PrintOut(text) && std::fflush(stdout) == 0;
  // Whoever started the run is told at once; a reader that is gone wants to know nothing.
  if (is_printed || failed_before || errno == EPIPE) return;
  std::fprintf(stderr, "warning: cannot write what is fetched to standard output: %s\n", std::strerror(errno));
}

/// Of a pass; 0: nothing tells, as of files without lines.
int64_t ExpectedExamples(const CompiledJob& job, const std::stop_token& stop) {
  const TrainerDesc& desc = job.desc();
  const std::string feed = FeedNameFor(desc.dataset().class_name(), desc.data_desc());
  return job.environment().feeds.ReadsText(feed) ? EstimateLines(job.FilesOfPass(job.FirstPass()), stop) : 0;
}

}  // namespace

Result<std::unique_ptr<RunRecorder>> RunRecorder::Create(const CompiledJob& job, int64_t resumed_step, RunOutput output,
                                                         const std::stop_token& stop) {
  std::unique_ptr<RunRecorder> recorder(
      new RunRecorder(ExpectedExamples(job, stop), ProgressLine::DetectOptions(output.terminal)));
  recorder->output_ = std::move(output);
  recorder->said_ = job.config().said_of_values;
  const std::string& folder = job.output_dir();
  if (folder.empty()) return recorder;
  MR_TRY(MakeFolder(folder));
  recorder->path_ = folder + (job.desc().infer() ? "/infer.jsonl" : "/metrics.jsonl");
  recorder->resumed_step_ = resumed_step;
  if (resumed_step < 0) MR_TRY(recorder->OpenLines(""));
  if (job.desc().output().tensorboard() && !job.desc().infer()) {
    MR_ASSIGN(recorder->events_, EventWriter::Create(folder + "/tensorboard", resumed_step + 1));
  }
  return recorder;
}

RunRecorder::~RunRecorder() { progress_.Clear(); }

Status RunRecorder::GoOn() {
  if (path_.empty()) return Status::Ok();
  EarlierLines kept;
  std::error_code error;
  if (std::filesystem::exists(path_, error)) {
    if (!std::filesystem::is_regular_file(path_, error)) {
      return IoError("\"" + path_ + "\" is no plain file, and the metrics of the run belong there");
    }
    MR_ASSIGN(const std::string before, ReadFile(path_));
    kept = LinesUpTo(before, resumed_step_);
  }
  point_step_ = kept.point_step;
  evaluation_ = std::move(kept.evaluation);
  return OpenLines(kept.text);
}

Status RunRecorder::OpenLines(const std::string& kept) {
  // That of a run before says nothing of this one.
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (path_.ends_with("/metrics.jsonl")) std::filesystem::remove(folder / "run.json", none);
  MR_TRY(WriteFileAtomically(path_, kept));
  bytes_ = static_cast<int64_t>(kept.size());
  metrics_ = FileDescriptor(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  return metrics_.is_open() ? Status::Ok() : IoErrorFromErrno("cannot open \"" + path_ + "\"", errno);
}

void RunRecorder::OnTick(const RunProgress& progress) {
  const std::lock_guard lock(mutex_);
  progress_.Show(progress, expected_examples_, estimated_);
}

Status RunRecorder::OnLoad(const PassStats& load) {
  const std::lock_guard lock(mutex_);
  ShowLeftOut("", load);
  ShowValueWarnings("", load, Reads::kTraining);
  return Status::Ok();
}

Status RunRecorder::OnFetch(const FetchLine& line) {
  // Both may go to one terminal, where the line would begin behind the progress.
  if (output_.fetched != nullptr) {
    ClearProgress();
    MR_TRY(output_.fetched(line));
  }
  const std::lock_guard lock(mutex_);
  if (output_.fetched == nullptr) {
    progress_.Clear();
    PrintFetched(FetchText(line));
  }
  return AppendPoint(line);
}

Status RunRecorder::OnPoint(const FetchLine& line) {
  const std::lock_guard lock(mutex_);
  // One at this step is of this epoch: of the run that this one goes on from, when it ended before the checkpoint.
  return line.step == point_step_ ? Status::Ok() : AppendPoint(line);
}

Status RunRecorder::AppendPoint(const FetchLine& line) {
  point_step_ = line.step;
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
  MR_TRY(RecordEval(report));
  return output_.evaluated ? output_.evaluated(report) : Status::Ok();
}

void RunRecorder::ShowEval(const EvalReport& report) {
  std::string text = "evaluation" + (report.set.empty() ? "" : " of " + report.set) + " after step " +
                     std::to_string(report.step) + ":";
  for (const auto& [name, value] : WithLoss(report.loss, report.metrics)) {
    text += " " + name + " " + MetricText(name, value, report.remarks.bounds);
  }
  if (report.non_finite_rows > 0) text += ", " + std::to_string(report.non_finite_rows) + " examples not finite";
  progress_.Clear();
  std::fprintf(output_.terminal, "%s (%lld examples, %s s)\n", text.c_str(), static_cast<long long>(report.examples),
               FixedNumber(report.seconds, 1).c_str());
  const std::string what = report.set.empty() ? "evaluation: " : "evaluation of " + report.set + ": ";
  ShowRemarks(what, report.remarks);
  ShowLeftOut(what, report.data);
  ShowValueWarnings(what, report.data, Reads::kModel);
}

Status RunRecorder::RecordEval(const EvalReport& report) {
  const std::lock_guard lock(mutex_);
  JsonWriter json;
  BeginLine(&json, report.step, report.epoch, report.trained_examples);
  std::vector<Scalar> scalars;
  const auto add = [&](const EvalReport& set, const std::string& of_set) {
    const auto put = [&](const std::string& name, double value) {
      json.Key("eval_" + name + of_set).Number(value);
      scalars.emplace_back("eval/" + name + of_set, value);
    };
    put("loss", set.loss);
    for (const auto& [name, value] : set.metrics) put(name, value);
  };
  add(report, "");
  ShowEval(report);
  if (!report.set.empty()) add(report, "@" + report.set);
  for (const EvalReport& other : report.others) {
    add(other, "@" + other.set);
    ShowEval(other);
  }
  json.EndObject();
  // A run that goes on evaluates once more what an end within the epoch's end had evaluated already.
  if (MeasuredIn(json.text()) == MeasuredIn(evaluation_)) return Status::Ok();
  MR_TRY(AppendLine(json.text()));
  return AddEvents(report.step, scalars);
}

Status RunRecorder::OnShrink(const TableShrink& shrink) {
  const std::lock_guard lock(mutex_);
  progress_.Clear();
  std::fprintf(output_.terminal, "before pass %s: table %s was shrunk to %lld rows, %lld deleted\n",
               shrink.pass.c_str(), shrink.table.c_str(), static_cast<long long>(shrink.rows),
               static_cast<long long>(shrink.deleted));
  return Status::Ok();
}

Status RunRecorder::OnPass(const PassReport& report) {
  ShowPass(report);
  return output_.passed ? output_.passed(report) : Status::Ok();
}

void RunRecorder::ShowPass(const PassReport& report) {
  const std::lock_guard lock(mutex_);
  progress_.Clear();
  const double rate = report.seconds > 0 ? static_cast<double>(report.examples) / report.seconds : 0;
  std::string text = "epoch " + std::to_string(report.epoch + 1) + ": " + std::to_string(report.examples) + " examples";
  for (const auto& [name, value] : WithLoss(report.loss, report.metrics)) {
    text += ", " + name + " " + MetricText(name, value, report.remarks.bounds);
  }
  if (report.non_finite_rows > 0) text += ", " + std::to_string(report.non_finite_rows) + " examples not finite";
  std::fprintf(output_.terminal, "%s, %s examples/s\n", text.c_str(), FixedNumber(rate, 0).c_str());
  ShowRemarks("", report.remarks);
  ShowLeftOut("", report.data);
  ShowValueWarnings("", report.data, Reads::kTraining);
  if (report.data.rows > 0) {
    expected_examples_ = report.data.rows;
    estimated_ = false;
  }
}

void RunRecorder::ShowRemarks(const std::string& what, const MetricRemarks& remarks) {
  for (const auto& [once, line] : remarks.lines) {
    // The next measurement has other numbers of examples.
    if (!said_.insert(what + once).second) continue;
    progress_.Clear();
    std::fprintf(output_.terminal, "%s%s\n", what.c_str(), line.c_str());
  }
}

void RunRecorder::ShowLeftOut(const std::string& what, const PassStats& read) {
  const std::string line = LeftOutLine(read);
  if (line.empty() || !said_.insert(what + line).second) return;
  progress_.Clear();
  std::fprintf(output_.terminal, "%s%s\n", what.c_str(), line.c_str());
}

void RunRecorder::ShowValueWarnings(const std::string& what, const PassStats& read, Reads reads) {
  for (const auto& [once, warning] : ValueWarnings(read, reads)) {
    // The next pass has other numbers of lines. As what readers say, also where the run shows nothing.
    if (!said_.insert(once).second) continue;
    progress_.Clear();
    Say("warning: " + what + warning + "\n");
  }
}

void RunRecorder::ClearProgress() {
  const std::lock_guard lock(mutex_);
  progress_.Clear();
}

Status RunRecorder::Finish() {
  const std::lock_guard lock(mutex_);
  if (metrics_.is_open() && !HasLines()) lost_.insert(path_);
  if (events_ != nullptr && !events_->IsThere()) lost_.insert(events_->path());
  if (lost_.empty()) return Status::Ok();
  std::string files;
  for (const std::string& path : lost_) files += (files.empty() ? "\"" : ", \"") + path + "\"";
  return IoError(files + " was removed, replaced or cut short while the run wrote to it: what it held is lost");
}

void RunRecorder::TellLost(const std::string& path) {
  if (!lost_.insert(path).second) return;
  progress_.Clear();
  std::fprintf(output_.terminal,
               "warning: \"%s\" was removed, replaced or cut short while the run writes to it; the run goes on\n",
               path.c_str());
}

Status RunRecorder::AppendLine(const std::string& line) {
  if (!metrics_.is_open()) return Status::Ok();
  if (!HasLines()) {
    TellLost(path_);
    // What comes from now on is kept.
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    FileDescriptor anew(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
    if (anew.is_open()) metrics_ = std::move(anew);
    bytes_ = 0;
  }
  MR_TRY(WriteAll(metrics_, line + "\n", path_));
  bytes_ += static_cast<int64_t>(line.size()) + 1;
  return Status::Ok();
}

Status RunRecorder::AddEvents(int64_t step, const std::vector<Scalar>& scalars) {
  if (events_ == nullptr) return Status::Ok();
  if (!events_->IsThere()) {
    const std::string path = events_->path();
    TellLost(path);
    auto anew = EventWriter::Create(std::filesystem::path(path).parent_path().string(), std::nullopt);
    if (anew.ok()) events_ = std::move(*anew);
  }
  return events_->AddScalars(step, SecondsSince1970(), scalars);
}

}  // namespace millrace
