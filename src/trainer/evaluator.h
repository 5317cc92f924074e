#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "trainer/job.h"
#include "trainer/run_hooks.h"

namespace millrace {

/// Measures the job's model on its evaluation set with all workers' threads. Writes no parameter and makes no row.
class Evaluator {
 public:
  /// The job's parameters must exist.
  static Result<std::unique_ptr<Evaluator>> Create(Job& job);
  /// Gives back the memory of an evaluation set that is held in memory.
  ~Evaluator();

  /// One pass over the evaluation set, while no worker trains. kCancelled at a stop request.
  Result<EvalReport> Run(const RunState& state, std::stop_token stop);

 private:
  struct Reader {
    std::unique_ptr<Frame> frame;
    std::unique_ptr<MetricReader> metrics;
    const Tensor* loss = nullptr;
    double loss_sum = 0;
    int64_t examples = 0;
    Status status;
  };
  explicit Evaluator(Job& job) : job_(&job) {}
  Status RunReader(Reader& reader, BatchSource& source, const std::stop_token& stop);

  Job* job_;
  std::vector<Reader> readers_;
  bool loaded_ = false;
};

}  // namespace millrace
