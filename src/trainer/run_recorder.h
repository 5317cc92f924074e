#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/event_writer.h"
#include "core/file.h"
#include "trainer/job.h"
#include "trainer/progress_line.h"
#include "trainer/run_hooks.h"

namespace millrace {

/// Shows a run on standard error as it goes, and keeps its numbers: OUTPUT_DIR/metrics.jsonl, an object a print and an
/// evaluation, and TensorBoard events in OUTPUT_DIR/tensorboard; for an `infer` job OUTPUT_DIR/infer.jsonl alone.
///
/// Thread-safe, as RunReporter wants it. Lines are written at once.
class RunRecorder final : public RunReporter {
 public:
  /// Begins metrics.jsonl anew, but for a run that goes on (`resumed_step` >= 0): that calls GoOn before it has
  /// anything to record. Without an output folder nothing is written. A stop request ends its look at the files' sizes.
  /// kIo.
  static Result<std::unique_ptr<RunRecorder>> Create(const Job& job, int64_t resumed_step, std::FILE* terminal,
                                                     const std::stop_token& stop);
  ~RunRecorder() override;
  /// Keeps the lines of metrics.jsonl up to the resumed step, and goes on behind them. kIo.
  Status GoOn();

  void OnTick(const RunProgress& progress) override;
  Status OnFetch(const FetchLine& line) override;
  Status OnEval(const EvalReport& report) override;
  Status OnPass(const PassReport& report) override;

  /// Takes the progress line away.
  void ClearProgress();

 private:
  RunRecorder(int64_t expected_examples, const ProgressLine::Options& options)
      : progress_(options), expected_examples_(expected_examples) {}
  Status OpenLines(const std::string& kept);
  Status AppendLine(const std::string& line);
  Status AddEvents(int64_t step, const std::vector<Scalar>& scalars);

  std::mutex mutex_;
  ProgressLine progress_;
  int64_t expected_examples_;  ///< of a pass; 0: unknown
  bool estimated_ = true;
  std::string path_;
  int64_t resumed_step_ = -1;  ///< -1: none
  FileDescriptor metrics_;
  std::unique_ptr<EventWriter> events_;
  std::FILE* terminal_ = nullptr;
};

}  // namespace millrace
