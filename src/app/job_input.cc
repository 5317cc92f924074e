#include "app/job_input.h"

#include <cstdio>

#include "batch/batch_pool.h"
#include "trainer/feature_preparation.h"
#include "trainer_desc.pb.h"

namespace millrace {

Result<JobAndEnvironment> LoadInputJob(const InputJob& job, std::stop_token stop) {
  MR_ASSIGN(const Environment environment, MakeEnvironment(job.plugins));
  ConfigRequest request;
  request.file = job.file;
  request.overrides = job.overrides;
  request.needs_model = false;
  request.stop = stop;
  MR_ASSIGN(JobAndEnvironment loaded, LoadJob(std::move(request), std::nullopt, &environment));
  const std::unique_ptr<RankGroup> alone = RankGroup::Solo();
  MR_TRY(PrepareFeatures({.ranks = *alone, .terminal = stderr}, loaded.environment, std::move(stop), &loaded.config));
  return loaded;
}

Result<std::unique_ptr<JobInput>> JobInput::Open(const InputJob& input, std::stop_token stop) {
  MR_ASSIGN(JobAndEnvironment job, LoadInputJob(input, stop));
  const TrainerDesc& desc = *job.config.desc;
  DatasetSettings settings = DatasetSettings::FromDesc(desc);
  settings.threads = std::max(1, desc.thread_num());
  settings.output_dir = desc.output().dir();
  settings.stop = stop;
  MR_ASSIGN(std::unique_ptr<Dataset> dataset,
            job.environment.datasets.Create(desc.dataset().class_name(), desc.data_desc(), job.config.files,
                                            job.environment.feeds, settings));
  PassStats loaded;
  if (auto* memory = dynamic_cast<InMemoryControl*>(dataset.get())) {
    MR_ASSIGN(loaded, memory->LoadIntoMemory(stop));
  }
  return std::unique_ptr<JobInput>(new JobInput(std::move(job), std::move(dataset), std::move(loaded)));
}

Status JobInput::ForEachBatch(int64_t batches, std::stop_token stop,
                              const std::function<Status(const SlotBatch&)>& visit) {
  MR_TRY(dataset_->BeginPass({.pass = 0, .workers = 1, .ordered = true, .seed = desc().seed()}));
  for (int64_t i = 0; i < batches; ++i) {
    MR_ASSIGN(const BatchPtr batch, dataset_->source(0).Next(stop));
    if (batch == nullptr) break;
    MR_TRY(visit(*batch));
  }
  MR_ASSIGN(PassStats read, dataset_->EndPass());
  AddPassStats(loaded_, &read);
  for (const auto& [once, warning] : ValueWarnings(read, Reads::kTraining)) {
    if (job_.config.said_of_values.contains(once)) continue;
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  return Status::Ok();
}

}  // namespace millrace
