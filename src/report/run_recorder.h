#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "core/event_writer.h"
#include "core/file.h"
#include "core/same_file.h"
#include "job/compiled_job.h"
#include "job/run_hooks.h"
#include "report/progress_line.h"

namespace millrace {

/// Where the words of a run go.
struct RunOutput {
  std::FILE* terminal = stderr;
  /// Takes the values that were fetched; empty: they are printed on standard output.
  std::function<Status(const FetchLine&)> fetched = {};
  /// Are told of each evaluation and each pass, by the trainer's thread, while no worker trains; a failure ends the
  /// run. Empty: nobody is.
  std::function<Status(const EvalReport&)> evaluated = {};
  std::function<Status(const PassReport&)> passed = {};
  /// Whether one of these asked for the stop: the run is no interrupted one then. Empty: none did.
  std::function<bool()> ended = {};
};

/// Shows a run on the terminal as it goes, and keeps its numbers: OUTPUT_DIR/metrics.jsonl, an object a print and an
/// evaluation, and TensorBoard events in OUTPUT_DIR/tensorboard; for an `infer` job OUTPUT_DIR/infer.jsonl alone.
///
/// Thread-safe, as RunReporter wants it. Lines are written at once.
class RunRecorder final : public RunReporter {
 public:
  /// Begins metrics.jsonl anew, but for a run that goes on (`resumed_step` >= 0): that calls GoOn before it has
  /// anything to record. Without an output folder nothing is written. A stop request ends its look at the files' sizes.
  /// kIo.
  static Result<std::unique_ptr<RunRecorder>> Create(const CompiledJob& job, int64_t resumed_step, RunOutput output,
                                                     const std::stop_token& stop);
  ~RunRecorder() override;
  /// Keeps the lines of metrics.jsonl up to the resumed step, and goes on behind them. kIo.
  Status GoOn();

  void OnTick(const RunProgress& progress) override;
  Status OnLoad(const PassStats& load) override;
  Status OnFetch(const FetchLine& line) override;
  Status OnPoint(const FetchLine& line) override;
  Status OnEval(const EvalReport& report) override;
  Status OnPass(const PassReport& report) override;
  /// Shows a shrink.
  Status OnShrink(const TableShrink& shrink);

  /// kIo when metrics.jsonl or the events, or a folder with them, were taken away, replaced or cut short while the run
  /// wrote to them.
  Status Finish();

  /// Takes the progress line away.
  void ClearProgress();

 private:
  RunRecorder(int64_t expected_examples, const ProgressLine::Options& options)
      : progress_(options), expected_examples_(expected_examples) {}
  Status RecordEval(const EvalReport& report);
  /// Of the set itself, without the others.
  void ShowEval(const EvalReport& report);
  void ShowPass(const PassReport& report);
  Status OpenLines(const std::string& kept);
  Status AppendPoint(const FetchLine& line);
  /// Says what is to be known of the metrics of `what`, each kind of remark once.
  void ShowRemarks(const std::string& what, const MetricRemarks& remarks);
  /// Says what was left out of the rows of `what`, once.
  void ShowLeftOut(const std::string& what, const PassStats& read);
  /// Says what to warn of in the values of `what`, once a column.
  void ShowValueWarnings(const std::string& what, const PassStats& read, Reads reads);
  Status AppendLine(const std::string& line);
  bool HasLines() const { return IsStillUnder(metrics_.get(), path_, bytes_); }
  /// Says that what was written to `path` is gone, and keeps it for Finish.
  void TellLost(const std::string& path);
  Status AddEvents(int64_t step, const std::vector<Scalar>& scalars);

  std::mutex mutex_;
  ProgressLine progress_;
  int64_t expected_examples_;  ///< of a pass; 0: unknown
  bool estimated_ = true;
  std::string path_;
  int64_t resumed_step_ = -1;  ///< -1: none
  int64_t point_step_ = -1;    ///< of the last line of training; -1: none
  std::string evaluation_;     ///< the last line of one that the run before had written
  FileDescriptor metrics_;
  int64_t bytes_ = 0;           ///< in it
  std::set<std::string> lost_;  ///< what was written there is gone
  std::unique_ptr<EventWriter> events_;
  RunOutput output_;
  std::set<std::string> said_;
};

}  // namespace millrace
