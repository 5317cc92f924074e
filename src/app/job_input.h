#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "dataset/dataset.h"
#include "trainer/default_environment.h"

namespace millrace {

/// A job whose input is wanted.
struct InputJob {
  std::string file;
  std::vector<std::string> overrides;
  std::vector<std::string> plugins;  ///< beside those that the job names
};

/// Reads a job's file with overrides, and loads its plugins, for what only reads data: it needs no model. Features that
/// learn from the training files do so, by one reading of these (PrepareFeatures).
Result<JobAndEnvironment> LoadInputJob(const InputJob& job, std::stop_token stop = {});

/// The input of a job as a SERIAL training of its first epoch reads it: file and line order, the shuffle if the job
/// asks for one, batches of its size. One thread.
class JobInput {
 public:
  /// Reads the job by LoadInputJob and makes its dataset; an InMemoryDataset is loaded.
  static Result<std::unique_ptr<JobInput>> Open(const InputJob& job, std::stop_token stop);

  const TrainerDesc& desc() const { return *job_.config.desc; }
  const SlotSchema& schema() const { return dataset_->schema(); }
  /// What is suspicious in the job's file; empty: nothing.
  const std::string& warnings() const { return job_.config.warnings; }

  /// Hands the first `batches` batches to `visit`, and stops at its first failure. Behind all of them it says on
  /// standard error what is odd about the values (ValueWarnings).
  Status ForEachBatch(int64_t batches, std::stop_token stop, const std::function<Status(const SlotBatch&)>& visit);

 private:
  JobInput(JobAndEnvironment job, std::unique_ptr<Dataset> dataset, PassStats loaded)
      : job_(std::move(job)), dataset_(std::move(dataset)), loaded_(std::move(loaded)) {}

  JobAndEnvironment job_;
  std::unique_ptr<Dataset> dataset_;
  PassStats loaded_;  ///< of an InMemoryDataset
};

}  // namespace millrace
