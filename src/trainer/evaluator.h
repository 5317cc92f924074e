#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_session.h"
#include "job/run_hooks.h"
#include "serving/slot_watch.h"

namespace millrace {

/// Measures the job's model on datasets, mostly its evaluation sets, with all workers' threads. Writes no parameter and
/// makes no row.
class Evaluator {
 public:
  /// On the session's evaluation sets, which ranks of a job measure together: each the files that it reads. Ranks that
  /// serve measure none, as they answer for the rows. The session's parameters must exist, on all ranks the same ones.
  static Result<std::unique_ptr<Evaluator>> Create(JobSession& session);
  /// On `dataset`, which outlives the evaluator, by this process alone.
  static Result<std::unique_ptr<Evaluator>> Create(JobSession& session, Dataset& dataset);
  /// Gives back the memory of datasets that it loaded.
  ~Evaluator();

  /// One pass over each dataset, while no worker trains; one in memory is loaded by the first Run, unless it is
  /// already. The report is of the first, and has those of the others. kCancelled at a stop request. In a job of ranks
  /// a collective, which a failure or a stop request of any of them ends on all, with the same Status; the report is of
  /// all where a rank leads, and empty elsewhere.
  Result<EvalReport> Run(const RunState& state, std::stop_token stop);

 private:
  struct Reader {
    std::unique_ptr<Frame> frame;
    std::unique_ptr<MetricAccumulator> metrics;
    SlotWatch watch;
    SlotShares shares;  ///< that the watch saw
    int64_t examples = 0;
    Status status;
  };
  /// What some batches came to.
  struct Sums {
    MetricTotals totals;
    int64_t examples = 0;
  };
  /// What a process has measured.
  struct Share {
    std::vector<Sums> sums;  ///< of all that had examples, or of each stream that had, in their order
    PassStats load;          ///< of a dataset that is held in memory
    PassStats data;          ///< of the pass
  };

  /// A dataset that is measured.
  struct Input {
    Dataset* dataset;
    InMemoryControl* memory;  ///< the same; null: its rows are not in memory
    bool loaded = false;      ///< by Run, so it goes with the evaluator
    PassStats loaded_stats;   ///< of that
  };

  /// `own_ranks`: of an evaluator that measures without the session's ranks; otherwise null.
  Evaluator(JobSession& session, std::unique_ptr<RankGroup> own_ranks);
  static Result<std::unique_ptr<Evaluator>> Create(JobSession& session, const std::vector<Dataset*>& datasets,
                                                   std::unique_ptr<RankGroup> own_ranks);
  /// Of the input that is measured now.
  Result<EvalReport> MeasureInput(const RunState& state, const std::stop_token& stop);
  /// Streams that one reader goes through, one after the other; 0: each reader has a source.
  int streams() const { return own_ranks_ != nullptr ? 0 : session_->EvalStreams(); }
  /// What this rank measures.
  Status Measure(const std::stop_token& stop, Share* share);
  /// Measure of every rank; where one leads, `others` become the bytes of all shares but its own, by rank.
  Status MeasureTogether(const std::stop_token& stop, Share* share, std::vector<std::string>* others);
  Status RunReaders(const std::stop_token& stop, Share* share);
  Status RunReader(Reader& reader, BatchSource& source, const std::stop_token& stop);
  /// Adds up what readers have measured since the last call.
  void TakeSums(Share* share);
  static std::string ToBytes(const Share& share);
  Result<Share> FromBytes(std::string_view bytes) const;
  /// Of what this process measured, and of what others did, by rank (of the first nothing).
  Result<EvalReport> ReportOf(std::vector<Share> shares, const std::vector<std::string>& others, const RunState& state);

  JobSession* session_;
  const CompiledJob* job_;
  std::unique_ptr<RankGroup> own_ranks_;
  RankGroup* ranks_;  ///< that measure together
  std::vector<Input> inputs_;
  Input* input_ = nullptr;   ///< that is measured now
  SharedExamples examples_;  ///< of all readers
  std::vector<Reader> readers_;
};

}  // namespace millrace
