#pragma once

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batch/label_range_monitor.h"
#include "job/run_hooks.h"
#include "metrics/metric.h"
#include "ranks/rank_tables.h"

namespace millrace {

/// What a rank of a job did in a run, and what it holds at the end.
struct RankFigures {
  std::string host;
  int64_t examples = 0;  ///< trained; 0: it served
  int64_t rows = 0;      ///< of tables that it owns
  int64_t row_bytes = 0;
  /// Summed over its workers: waiting for input, in operators, and, in step, waiting for other ranks.
  double read_seconds = 0;
  double run_seconds = 0;
  double exchange_seconds = 0;
  int64_t peak_rss_bytes = 0;
};

/// What a finished run was like, added up over its passes: run.json and the closing block.
struct RunSummary {
  int64_t examples = 0;  ///< of the job: with those of earlier runs that this one went on from
  int64_t batches = 0;
  int64_t epochs = 0;
  int64_t run_examples = 0;  ///< of this run alone, as everything that follows
  int64_t run_batches = 0;
  double seconds = 0;        ///< wall clock of training passes
  double total_seconds = 0;  ///< with loading, evaluation, checkpoints
  int workers = 1;
  int processors = 0;           ///< that its processes may use, on all hosts
  int ranks = 0;                ///< of a job with `dist`; 0 for others
  int servers = 0;              ///< of them, those that trained nothing
  int64_t wire_bytes = 0;       ///< that its ranks sent to each other in this run
  RankPushes pushes;            ///< of all ranks
  int restarts = 0;             ///< of its ranks, without some that were lost (ranks/rank_restarts.h)
  double recovery_seconds = 0;  ///< that these took
  int64_t replayed = 0;         ///< examples that were trained once more behind them
  std::vector<RankFigures> per_rank;
  /// As in PassReport, of the last pass.
  double loss = std::numeric_limits<double>::quiet_NaN();
  MetricValues metrics;                   ///< of the last pass
  MetricRemarks remarks;                  ///< of these
  bool is_ended_by_callback = false;      ///< it was `interrupted` by one, as a success
  std::vector<FetchLine::Value> fetched;  ///< of a program, after the last batch of the last pass
  bool is_program = false;                ///< that measures itself
  bool has_eval = false;
  EvalReport eval;  ///< of the model at the end: the last one, or the best
  bool is_best_model = false;
  std::shared_ptr<const Calibrations> calibrations;  ///< of the model at the end; null: the job asks for none
  PassStats data;  ///< the input: of loading into memory, or of the pass that read most of it
  /// Seconds summed over threads: "read_wait" and "compute" of workers, "load", and the input's stages.
  std::map<std::string, double> stage_seconds;
  int64_t peak_rss_bytes = 0;
  bool interrupted = false;
  int64_t non_finite_rows = 0;   ///< as in PassReport, of the last one
  bool is_unsound = false;       ///< interrupted within a batch that had changed parameters or states
  std::string unsaved_operator;  ///< as in RunReport
  int64_t saved_step = 0;        ///< as these in RunReport
  double unsaved_seconds = 0;
  double seconds_to_save = 0;
  bool stopped_early = false;
  /// Of this run and its evaluations: outside [0, 1] for a loss, and those that a metric is not defined for.
  LabelRangeCount odd_loss_labels;
  LabelRangeCount odd_metric_labels;
  std::vector<std::string> weightless_losses;  ///< those with weights, of whose examples none counted
  LabelRangeCount non_finite_losses;           ///< batches whose loss was NaN or infinite and was let pass
  std::vector<std::string> save_failures;      ///< of incremental.save_command
  std::vector<std::string> export_failures;
  bool infer = false;         ///< nothing was trained
  bool feeds_itself = false;  ///< by readers of the program: no dataset
  std::string bottleneck;
  std::string job;  ///< as it ran, a TrainerDesc in text format; what features learnt is left out
  std::vector<std::pair<std::string, MetricBetter>> better;  ///< of "loss" and the metrics

  double examples_per_second() const { return seconds > 0 ? static_cast<double>(run_examples) / seconds : 0; }
};

/// The ranks of a job with `dist`.
struct RanksOfRun {
  int count = 0;       ///< 0: a job without it
  int servers = 0;     ///< of them
  int processors = 0;  ///< as in RunSummary; 0: those of this process
};

/// Adds up a report. `workers` trained, on all ranks; `total_seconds` is the run's wall clock.
RunSummary Summarize(const RunReport& report, int workers, double total_seconds, const RanksOfRun& ranks = {});

/// run.json.
std::string RunJson(const RunSummary& summary);

/// The closing block: a few lines for people.
std::string ClosingBlock(const RunSummary& summary, const std::string& output_dir);

}  // namespace millrace
