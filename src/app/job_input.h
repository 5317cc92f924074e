#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "config/trainer_desc_reader.h"
#include "core/status.h"
#include "dataset/dataset.h"

namespace millrace {

/// Reads a job's file with overrides for what only reads data: it needs no model.
Result<LoadedConfig> LoadInputJob(const std::string& file, const std::vector<std::string>& overrides);

/// The input of a job as a SERIAL training of its first epoch reads it: file and line order, the shuffle if the job
/// asks for one, batches of its size. One thread.
class JobInput {
 public:
  /// Reads the job by LoadInputJob and makes its dataset; an InMemoryDataset is loaded.
  static Result<std::unique_ptr<JobInput>> Open(const std::string& file, const std::vector<std::string>& overrides,
                                                std::stop_token stop);

  const TrainerDesc& desc() const { return *config_.desc; }
  const SlotSchema& schema() const { return dataset_->schema(); }
  /// What is suspicious in the job's file; empty: nothing.
  const std::string& warnings() const { return config_.warnings; }

  /// Hands the first `batches` batches to `visit`, and stops at its first failure.
  Status ForEachBatch(int64_t batches, std::stop_token stop, const std::function<Status(const SlotBatch&)>& visit);

 private:
  JobInput(LoadedConfig config, std::unique_ptr<Dataset> dataset)
      : config_(std::move(config)), dataset_(std::move(dataset)) {}

  LoadedConfig config_;
  std::unique_ptr<Dataset> dataset_;
};

}  // namespace millrace
