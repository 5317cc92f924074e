#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "runtime/transfer.h"
#include "trainer/job_session.h"
#include "trainer/run_hooks.h"

namespace millrace {

/// Measures the job's model on a dataset, mostly its evaluation set, with all workers' threads. Writes no parameter and
/// makes no row.
class Evaluator {
 public:
  /// On `dataset`, which outlives the evaluator; one in memory is loaded by the first Run, unless it is already. The
  /// session's parameters must exist.
  static Result<std::unique_ptr<Evaluator>> Create(JobSession& session, Dataset& dataset);
  /// Gives back the memory of a dataset that it loaded.
  ~Evaluator();

  /// One pass over the dataset, while no worker trains. kCancelled at a stop request.
  Result<EvalReport> Run(const RunState& state, std::stop_token stop);

 private:
  struct Reader {
    std::unique_ptr<Frame> frame;
    std::unique_ptr<MetricAccumulator> metrics;
    const Tensor* loss = nullptr;
    HostView host_view;
    double loss_sum = 0;
    int64_t examples = 0;
    Status status;
  };
  Evaluator(JobSession& session, Dataset& dataset) : job_(&session.job()), dataset_(&dataset) {}
  Status RunReader(Reader& reader, BatchSource& source, const std::stop_token& stop);

  const CompiledJob* job_;
  Dataset* dataset_;
  bool loaded_ = false;     ///< by Run, so it goes with the evaluator
  PassStats loaded_stats_;  ///< of that
  std::vector<Reader> readers_;
};

}  // namespace millrace
