#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "batch/consumed_ranges.h"
#include "dataset/dataset.h"
#include "job/calibrated_model.h"
#include "metrics/metric_set.h"
#include "reader/reader_holder.h"

namespace millrace {

/// A variable that the rounds of a program's loop hand on, serialized.
struct LoopVariable {
  std::string name;
  std::string bytes;
};

/// The state of an operator's kernel in a frame, serialized.
struct OperatorState {
  std::string name;
  int frame = 0;           ///< place among the run's frames
  std::string attributes;  ///< of the operator, a line each
  std::string bytes;
};

/// A pass whose model is saved, but on which incremental.save_command failed.
struct SaveFailure {
  std::string pass;
  std::string message;
};

/// Where a run stands, at a batch boundary: what a checkpoint holds beside the parameters.
struct RunState {
  int64_t epoch = 0;     ///< passes completed
  int64_t step = 0;      ///< batches trained since the very start
  int64_t examples = 0;  ///< since the very start
  /// What of pass `epoch` was trained; empty at a pass's end.
  ConsumedRanges trained;
  /// Of the metrics over the current pass.
  MetricTotals metric_totals;
  /// Of the metrics since the last print ("batch_auc"); nullopt at a pass's end, and when none is printed.
  std::optional<MetricTotals> metric_window;
  MetricValues last_metrics;  ///< of the last whole pass; empty before there is one
  /// Early stopping: the best value so far, evaluations since, and whether there was any.
  double best_metric = 0;
  int64_t evaluations_since_best = 0;
  bool has_best = false;
  int64_t last_eval_step = 0;  ///< after which the last whole evaluation was; 0 before the first
  int64_t input_rows = 0;      ///< of an in-memory dataset; 0 of one that streams
  int input_streams = 1;       ///< of these rows, in a job of ranks (StreamShare)
  /// Batches of worker 0 in pass `epoch`, of a program that feeds itself all of them: what print_period counts.
  int64_t printed_batches = 0;
  /// Of a program that feeds itself: how far its readers were read, and what its loop hands on.
  std::vector<ReaderState> readers;
  std::vector<LoopVariable> loop_variables;
  std::vector<OperatorState> operator_states;  ///< of every frame, in their order
  /// By kind, among the trained units of pass `epoch`; of a dataset that meets them while it is trained on.
  std::map<std::string, int64_t> bad_lines;
  /// Of the pass before that read most: a run with nothing left to do reads none.
  PassStats data;
  std::vector<SaveFailure> save_failures;  ///< of passes before; a run that goes on tries them again
  int64_t shrunk_epoch = 0;                ///< before which tables were last shrunk (incremental.shrink)
};

/// What incremental.shrink did to a table before a pass.
struct TableShrink {
  std::string table;
  std::string pass;  ///< that begins
  int64_t rows = 0;  ///< that are left
  int64_t deleted = 0;
};

/// A line of fetched values (worker 0), as printed and logged.
struct FetchLine {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t examples = 0;
  int64_t batch = 0;  ///< of worker 0 in this pass, from 1
  struct Value {
    std::string name;   ///< as in fetch_var_names
    std::string label;  ///< as printed
    std::vector<double> values;
    double bound = 0;  ///< of a metric: how far its value may be from the exact one
  };
  std::vector<Value> values;
};

/// What is shown of a pass or an evaluation: the metrics, or, where a job has none, the loss, if there is one.
inline MetricValues WithLoss(double loss, const MetricValues& metrics) {
  if (!metrics.empty() || std::isnan(loss)) return metrics;
  return {{"loss", loss}};
}

/// Quality on an evaluation set.
struct EvalReport {
  std::string set;  ///< its name; empty: it has none
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t trained_examples = 0;  ///< since the very start
  int64_t examples = 0;          ///< of the evaluation set
  double seconds = 0;
  double loss = 0;  ///< mean over rows; NaN without a loss
  MetricValues metrics;
  int64_t non_finite_rows = 0;  ///< whose prediction or label was NaN or infinite, and the metrics therefore NaN
  MetricRemarks remarks = {};
  PassStats data;                                  ///< of its input; of loading it, where it is held in memory
  std::vector<TaskCalibration> calibrations = {};  ///< that are taken from this set
  SlotShares shares = {};                          ///< what the values of its slots were
  std::vector<EvalReport> others = {};             ///< of the sets that are not watched
};

/// One pass, or a part of one that a stop ended.
struct PassReport {
  int64_t epoch = 0;
  int64_t batches = 0;
  int64_t examples = 0;
  double seconds = 0;           ///< wall clock from the first batch asked for to the last one trained, without pauses
  double pause_seconds = 0;     ///< in which workers stood still for evaluations and checkpoints
  double read_seconds = 0;      ///< workers' waiting for batches, summed over workers
  double run_seconds = 0;       ///< workers' operators, summed over workers
  double exchange_seconds = 0;  ///< of a job of ranks: waiting for each other, and adding up, summed over ranks
  /// As in EvalReport, of what was trained; NaN also of a program that feeds itself.
  double loss = std::numeric_limits<double>::quiet_NaN();
  MetricValues metrics;
  int64_t non_finite_rows = 0;  ///< as in EvalReport
  MetricRemarks remarks = {};
  std::vector<FetchLine::Value> fetched;  ///< of a program, which measures itself: after the last batch of a worker
  PassStats data;
};

/// A look at the run from outside, a few times a second.
struct RunProgress {
  int64_t epoch = 0;
  int64_t epochs = 0;
  int64_t pass_examples = 0;
  int64_t step = 0;
  double pass_seconds = 0;
  int64_t odd_labels = 0;  ///< that a loss or a metric has no meaning for, in this run
};

/// What the whole run did.
struct RunReport {
  std::vector<PassReport> passes;
  std::vector<EvalReport> evaluations;
  PassStats load;  ///< of an in-memory dataset
  double load_seconds = 0;
  double checkpoint_seconds = 0;
  RunState state;              ///< at the end
  int64_t finite_step = -1;    ///< after which the parameters were last looked at, and found without NaN; -1: never
  int64_t saved_step = 0;      ///< of the newest checkpoint that is there; 0: there is none
  double unsaved_seconds = 0;  ///< of training that a stop left out of a checkpoint; 0: there is none
  double seconds_to_save = 0;  ///< that it would have taken, about
  bool interrupted = false;
  bool stopped_early = false;
  bool feeds_itself = false;  ///< by readers of the program
  /// The stop ended a batch within a loop, when it had changed parameters or a kernel's state: there is no checkpoint
  /// of this moment.
  bool is_unsound = false;
  /// An operator that reads data by itself and does not say how far: there are no checkpoints. Empty: none does.
  std::string unsaved_operator;
  /// What an evaluation of this run found best so far; nullopt when none is watched, or the best was an earlier run's.
  std::optional<EvalReport> best_evaluation;
  /// The parameters at the end are those of best_evaluation, not of `state`.
  bool is_best_restored = false;
  std::string chrome_trace;  ///< with output.trace
};

/// Why a checkpoint is written.
struct CheckpointReason {
  bool is_best = false;     ///< the last evaluation was the best so far
  bool is_between = false;  ///< nobody asked for it: there is time, and a stop will be followed sooner
};

/// Keeps what is needed to go on after a crash.
class Checkpointer {
 public:
  virtual ~Checkpointer() = default;
  /// Saves the parameters of the job with `state`, once `check`, which looks at all of them, is ok; its failure comes
  /// back as it is. While no worker trains. kCancelled where a stop request came while it was written, and it would
  /// take long: called once more, it writes what changed alone, if it can.
  virtual Status Save(const RunState& state, const CheckpointReason& reason, const std::function<Status()>& check) = 0;
  /// About how long a Save would take. While workers train, too, but for the first call.
  virtual double SecondsToSave() = 0;
};

/// Keeps the model of a pass. Called while no worker trains.
class PassSaver {
 public:
  virtual ~PassSaver() = default;
  /// After the pass that ended at `state` was trained and evaluated; `is_last`: no other follows. What goes wrong with
  /// the model, but not with the run, is added to state->save_failures. kCancelled when a stop request cut it short: to
  /// be done again.
  virtual Status SavePass(bool is_last, std::stop_token stop, RunState* state) = 0;
  /// Does again what failed, and takes away what goes well now. A stop request leaves the rest.
  virtual Status Retry(std::vector<SaveFailure>* failures, std::stop_token stop) = 0;
};

/// Shows a run to people and programs. OnFetch comes from worker 0's thread, the rest from the trainer's.
class RunReporter {
 public:
  virtual ~RunReporter() = default;
  virtual void OnTick(const RunProgress& progress) = 0;
  /// Rows were loaded into memory.
  virtual Status OnLoad(const PassStats& load) = 0;
  virtual Status OnFetch(const FetchLine& line) = 0;
  /// A whole epoch printed nothing, as it was shorter than print_period or that is 0: what a print behind its last
  /// batch would show, and all metrics of the epoch.
  virtual Status OnPoint(const FetchLine& line) = 0;
  virtual Status OnEval(const EvalReport& report) = 0;
  virtual Status OnPass(const PassReport& report) = 0;
};

}  // namespace millrace
