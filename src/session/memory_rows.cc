#include "session/memory_rows.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "dataset/dataset_factory.h"
#include "dataset/row_exchange.h"
#include "session/script_job.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

Result<MemoryRows::Loaded> LoadedOf(const Result<PassStats>& stats) {
  MR_TRY(stats.status());
  return MemoryRows::Loaded(stats->rows, LeftOutLine(*stats));
}

}  // namespace

Result<std::unique_ptr<MemoryRows>> MemoryRows::Create(const std::string& text, const CallContext& context) {
  std::unique_ptr<MemoryRows> made(new MemoryRows);
  Result<LoadedConfig> config = ReadScriptJob(context.environment, "dataset", text, false, false);
  if (context.ranks.are_several()) MR_TRY(made->ShareFiles(context, &config));
  MR_TRY(config.status());
  const TrainerDesc& desc = *config->desc;
  DatasetSettings settings = DatasetSettings::FromDesc(desc);
  settings.threads = desc.thread_num();
  // Before they are exchanged, not all rows of a name are here.
  settings.rows.are_exchanged = context.ranks.are_several();
  made->merges_names_ = desc.dataset().merge_by_lineid();
  MR_ASSIGN(std::unique_ptr<Dataset> dataset,
            context.environment.datasets.Create("InMemoryDataset", desc.data_desc(), config->files,
                                                context.environment.feeds, settings));
  made->dataset_.emplace("dataset",
                         std::unique_ptr<InMemoryDataset>(dynamic_cast<InMemoryDataset*>(dataset.release())));
  return made;
}

Status MemoryRows::ShareFiles(const CallContext& context, Result<LoadedConfig>* read) {
  MR_ASSIGN(const std::vector<std::vector<std::string>> lists, FileLists(context, "load_into_memory", *read));
  MR_ASSIGN(const std::vector<std::string> all, FilesOfRanks(lists));
  if (all.empty()) return NoFilesOnAnyRank();
  const bool is_one = std::all_of(lists.begin(), lists.end(), [&](const auto& list) { return list == lists[0]; });
  const auto ranks = lists.size();
  const auto me = static_cast<size_t>(context.ranks.group->rank());
  std::vector<std::string> own;
  for (size_t i = 0; i < lists[me].size(); ++i) {
    if (!is_one || i % ranks == me) own.push_back(lists[me][i]);
  }
  // File k of rank r is number k * ranks + r, which is what rows that go to other ranks say.
  files_of_all_.clear();
  for (size_t i = 0; is_one && i < lists[0].size(); ++i) files_of_all_.push_back(lists[0][i]);
  for (size_t r = 0; !is_one && r < ranks; ++r) {
    for (size_t k = 0; k < lists[r].size(); ++k) {
      files_of_all_.resize(std::max(files_of_all_.size(), k * ranks + r + 1));
      files_of_all_[k * ranks + r] = lists[r][k];
    }
  }
  (*read)->files = std::move(own);
  return Status::Ok();
}

Result<MemoryRows::Loaded> MemoryRows::Load(const std::stop_token& stop) {
  MR_ASSIGN(const auto dataset, dataset_->Acquire());
  return LoadedOf(dataset->LoadIntoMemory(stop));
}

Status MemoryRows::Preload() {
  MR_ASSIGN(const auto dataset, dataset_->TryAcquireBriefly());
  preload_ = std::stop_source();
  return dataset->PreloadIntoMemory(preload_.get_token());
}

Result<MemoryRows::Loaded> MemoryRows::WaitPreload(const std::stop_token& stop) {
  MR_ASSIGN(const auto dataset, dataset_->Acquire());
  const std::stop_callback forward(stop, [this] { preload_.request_stop(); });
  return LoadedOf(dataset->WaitPreloadDone());
}

Status MemoryRows::Shuffle(uint64_t seed) {
  MR_ASSIGN(const auto dataset, dataset_->Acquire());
  return dataset->LocalShuffle(seed);
}

Result<MemoryRows::Loaded> MemoryRows::GlobalShuffle(const CallContext& context, uint64_t seed, int64_t most_rows,
                                                     int64_t pause_seconds) {
  MR_ASSIGN(const auto dataset, dataset_->Acquire());
  PassStats stats;
  if (context.ranks.are_several()) {
    MR_TRY(context.ranks.Together("global_shuffle", context.stop));
    RankGroup& group = *context.ranks.group;
    RowShuffle shuffle;
    shuffle.ranks = &group;
    shuffle.targets.seed = seed;
    shuffle.targets.streams = group.size();
    shuffle.targets.by = merges_names_ ? RowTargets::By::kName : RowTargets::By::kPlace;
    shuffle.most_rows = most_rows;
    shuffle.pause_of_rounds = std::chrono::seconds(pause_seconds);
    InMemoryDataset* const all = &*dataset;
    MR_TRY(ExchangeRows(shuffle, {&all, 1}, group.rank(), files_of_all_, &stats.counters, context.stop));
  }
  MR_TRY(dataset->LocalShuffle(seed));
  return Loaded(dataset->MemoryDataSize(), LeftOutLine(stats));
}

Status MemoryRows::SlotsShuffle(const std::vector<std::string>& slots, uint64_t seed, int64_t candidates) {
  MR_ASSIGN(const auto dataset, dataset_->TryAcquireBriefly());
  return dataset->SlotsShuffle(slots, seed, candidates);
}

Status MemoryRows::SetPhase(bool join) {
  MR_ASSIGN(const auto dataset, dataset_->TryAcquireBriefly());
  return dataset->SetPhases({join ? PassPhase::kJoin : PassPhase::kUpdate});
}

Status MemoryRows::SetBatches(int batch_size, int pv_batch_size, bool drop_last) {
  MR_ASSIGN(const auto dataset, dataset_->TryAcquireBriefly());
  return dataset->SetBatches(batch_size, pv_batch_size, drop_last);
}

Status MemoryRows::Release() {
  MR_ASSIGN(const auto dataset, dataset_->Acquire());
  dataset->ReleaseMemory();
  return Status::Ok();
}

Result<int64_t> MemoryRows::Size() {
  MR_ASSIGN(const auto dataset, dataset_->TryAcquireBriefly());
  return dataset->MemoryDataSize();
}

Result<int64_t> MemoryRows::PvSize() {
  MR_ASSIGN(const auto dataset, dataset_->TryAcquireBriefly());
  return dataset->PvDataSize();
}

}  // namespace millrace
