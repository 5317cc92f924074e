#include "dataset/dataset_factory.h"

#include "core/edit_distance.h"
#include "data_feed.pb.h"
#include "dataset/file_instant_dataset.h"
#include "dataset/in_memory_dataset.h"
#include "dataset/queue_dataset.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

Result<std::unique_ptr<Dataset>> MakeQueue(const DataFeedDesc& desc, std::vector<std::string> files,
                                           const DataFeedFactory& feeds, const DatasetSettings& settings) {
  QueueDatasetOptions options;
  options.threads = settings.threads;
  options.prefetch_batches = settings.prefetch_batches;
  options.spans = settings.spans;
  options.stop = settings.stop;
  options.output_dir = settings.output_dir;
  MR_ASSIGN(std::unique_ptr<QueueDataset> dataset,
            QueueDataset::Create(desc, std::move(files), feeds, std::move(options)));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

Result<std::unique_ptr<Dataset>> MakeInMemory(const DataFeedDesc& desc, std::vector<std::string> files,
                                              const DataFeedFactory& feeds, const DatasetSettings& settings) {
  if (!desc.name().empty()) MR_TRY(feeds.CheckName(desc.name()));
  InMemoryDatasetOptions options;
  options.threads = settings.threads;
  options.queue_num = settings.queue_num;
  options.local_shuffle = settings.local_shuffle;
  options.rows = settings.rows;
  options.stop = settings.stop;
  options.output_dir = settings.output_dir;
  options.feeds = feeds;
  MR_ASSIGN(std::unique_ptr<InMemoryDataset> dataset,
            InMemoryDataset::Create(desc, std::move(files), std::move(options)));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

Result<std::unique_ptr<Dataset>> MakeFileInstant(const DataFeedDesc& desc, std::vector<std::string> files,
                                                 const DataFeedFactory& feeds, const DatasetSettings& settings) {
  if (!desc.name().empty()) MR_TRY(feeds.CheckName(desc.name()));
  MR_ASSIGN(std::unique_ptr<FileInstantDataset> dataset,
            FileInstantDataset::Create(desc, std::move(files), settings.stop));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace

DatasetSettings DatasetSettings::FromDesc(const TrainerDesc& desc) {
  const DatasetDesc& dataset = desc.dataset();
  DatasetSettings settings;
  settings.queue_num = dataset.queue_num();
  settings.local_shuffle = dataset.local_shuffle();
  settings.prefetch_batches = dataset.prefetch_batches();
  settings.rows.merge_by_lineid = dataset.merge_by_lineid();
  settings.rows.merge_size = dataset.merge_size();
  settings.rows.enable_pv_merge = dataset.enable_pv_merge();
  for (const int phase : dataset.phases()) {
    settings.rows.phases.push_back(phase == DatasetDesc::JOIN ? PassPhase::kJoin : PassPhase::kUpdate);
  }
  settings.rows.sample_rate = dataset.sample_rate();
  settings.rows.sample_seed = desc.seed();
  return settings;
}

DatasetSettings DatasetSettings::ForEvaluation() const {
  DatasetSettings settings = *this;
  settings.local_shuffle = false;
  settings.spans = nullptr;
  settings.rows.enable_pv_merge = false;
  settings.rows.phases.clear();
  settings.rows.sample_rate = 1;
  return settings;
}

DatasetFactory DatasetFactory::Builtin() {
  DatasetFactory factory;
  factory.entries_ = {
      {"QueueDataset", MakeQueue}, {"InMemoryDataset", MakeInMemory}, {"FileInstantDataset", MakeFileInstant}};
  return factory;
}

Status DatasetFactory::Add(std::string name, Maker maker) {
  for (const Entry& entry : entries_) {
    if (entry.name == name) return AlreadyExists("a dataset of the class \"" + name + "\" is registered already");
  }
  entries_.push_back({std::move(name), maker});
  return Status::Ok();
}

Result<std::unique_ptr<Dataset>> DatasetFactory::Create(std::string_view name, const DataFeedDesc& desc,
                                                        std::vector<std::string> files, const DataFeedFactory& feeds,
                                                        const DatasetSettings& settings) const {
  std::string known;
  std::vector<std::string_view> candidates;
  for (const Entry& entry : entries_) {
    if (entry.name == name) return entry.maker(desc, std::move(files), feeds, settings);
    known += (known.empty() ? "" : ", ") + entry.name;
    candidates.push_back(entry.name);
  }
  return InvalidConfig("dataset.class_name: no dataset of the class \"" + std::string(name) + "\"" +
                       DidYouMean(name, candidates) + "; there are: " + known);
}

std::vector<std::string> DatasetFactory::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

}  // namespace millrace
