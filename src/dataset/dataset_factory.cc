#include "dataset/dataset_factory.h"

#include <glog/logging.h>

#include "core/caught.h"
#include "data_feed.pb.h"
#include "dataset/file_instant_dataset.h"
#include "dataset/in_memory_dataset.h"
#include "features/time_text.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

/// Makes draws for different purposes independent.
constexpr uint64_t kSets = 0x7365745f6f66;
constexpr uint64_t kSample = 0x73616d706c65;

/// The time was validated when the job was read.
int64_t SecondsOf(const std::string& iso) {
  int64_t seconds = 0;
  ReadTime(iso, {}, &seconds);
  return seconds;
}

void SetColumn(const EvalDesc::Since& since, RowTimes* rows) {
  rows->set_column(since.column());
  rows->set_format(since.format());
  rows->set_utc_offset_minutes(since.utc_offset_minutes());
}

Status CheckReadsAlone(std::string_view name, const DatasetSettings& settings) {
  if (!settings.shared_files) return Status::Ok();
  return InvalidConfig("dataset.class_name: ranks that share their files read them with a QueueDataset, not with \"" +
                       std::string(name) + "\"");
}

Result<std::unique_ptr<Dataset>> MakeQueue(const DataFeedDesc& desc, std::vector<std::string> files,
                                           const DataFeedFactory& feeds, const DatasetSettings& settings) {
  MR_ASSIGN(std::unique_ptr<QueueDataset> dataset, QueueDataset::Create(desc, std::move(files), feeds, settings));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

Result<std::unique_ptr<Dataset>> MakeInMemory(const DataFeedDesc& desc, std::vector<std::string> files,
                                              const DataFeedFactory& feeds, const DatasetSettings& settings) {
  MR_TRY(CheckReadsAlone("InMemoryDataset", settings));
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
  MR_TRY(CheckReadsAlone("FileInstantDataset", settings));
  MR_ASSIGN(std::unique_ptr<FileInstantDataset> dataset,
            FileInstantDataset::Create(desc, std::move(files), feeds, settings.stop));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace

DatasetSettings DatasetSettings::FromDesc(const TrainerDesc& desc, bool as_before) {
  const DatasetDesc& dataset = desc.dataset();
  DatasetSettings settings;
  settings.queue_num = dataset.queue_num();
  settings.local_shuffle = dataset.local_shuffle() || dataset.global_shuffle();
  settings.prefetch_batches = dataset.prefetch_batches();
  settings.rows.merge_by_lineid = dataset.merge_by_lineid();
  settings.rows.merge_size = dataset.merge_size();
  settings.rows.enable_pv_merge = dataset.enable_pv_merge();
  for (const int phase : dataset.phases()) {
    settings.rows.phases.push_back(phase == DatasetDesc::JOIN ? PassPhase::kJoin : PassPhase::kUpdate);
  }
  settings.rows.sample_rate = dataset.sample_rate();
  const uint64_t seed = desc.seed();
  settings.rows.sample = as_before ? LineDraw(seed, DrawnBy::kNumber) : LineDraw(Mix64(seed, kSample), DrawnBy::kName);
  settings.sets = LineDraw(Mix64(seed, kSets), as_before ? DrawnBy::kEnding : DrawnBy::kName);
  const DownsampleDesc& thinned = desc.model().downsample();
  if (desc.model().has_downsample() && !desc.infer()) {
    settings.thinned = {thinned.label(), thinned.value(), static_cast<double>(thinned.rate()),
                        LineDraw(seed, as_before ? DrawnBy::kPath : DrawnBy::kName)};
    settings.rows.thinned = settings.thinned;
  }
  if (!desc.infer()) {
    double shares = 0;
    for (const EvalDesc::Set& set : desc.eval().set()) shares += set.share();
    settings.rows.held = settings.held = LineShare(settings.sets, 0, shares, false);
  }
  return settings;
}

DatasetSettings DatasetSettings::ForEvaluation(const TrainerDesc& desc, int set) const {
  DatasetSettings settings = *this;
  settings.held = LineShare();
  double before = 0;
  for (int i = 0; i < set; ++i) before += desc.eval().set(i).share();
  if (set >= 0 && desc.eval().set(set).has_share()) {
    settings.held = LineShare(sets, before, before + desc.eval().set(set).share(), true);
  }
  settings.rows.held = settings.held;
  settings.local_shuffle = false;
  settings.spans = nullptr;
  settings.shared_files = nullptr;
  settings.rows.enable_pv_merge = false;
  settings.rows.phases.clear();
  settings.rows.sample_rate = 1;
  settings.thinned = settings.rows.thinned = {};
  return settings;
}

void ChooseTrainedRows(const TrainerDesc& desc, DataFeedDesc* feed) {
  if (desc.infer()) return;
  for (const EvalDesc::Set& set : desc.eval().set()) {
    if (!set.has_since()) continue;
    const int64_t at = SecondsOf(set.since().at());
    RowTimes& rows = *feed->mutable_rows();
    rows.set_until(rows.has_until() ? std::min(rows.until(), at) : at);
    SetColumn(set.since(), &rows);
  }
}

void ChooseRowsOfSet(const TrainerDesc& desc, int number, DataFeedDesc* feed) {
  if (number < 0) return;
  const EvalDesc::Set& set = desc.eval().set(number);
  if (set.has_share()) return ChooseTrainedRows(desc, feed);
  if (!set.has_since()) return;
  RowTimes& rows = *feed->mutable_rows();
  rows.set_from(SecondsOf(set.since().at()));
  if (set.since().has_until()) rows.set_until(SecondsOf(set.since().until()));
  SetColumn(set.since(), &rows);
}

std::string NoRowSince(const EvalDesc::Set& set) {
  const EvalDesc::Since& since = set.since();
  return "no row's column \"" + since.column() + "\" is at or behind \"" + since.at() + "\"" +
         (since.has_until() ? " and before \"" + since.until() + "\"" : "") +
         ": choose an earlier moment, or give the set files";
}

std::string RowsNotTrained(const TrainerDesc& desc) {
  std::string text;
  for (const EvalDesc::Set& set : desc.eval().set()) {
    if (set.has_since()) text += "; rows since \"" + set.since().at() + "\" are those of set \"" + set.name() + "\"";
  }
  return text;
}

DatasetFactory DatasetFactory::Builtin() {
  DatasetFactory factory;
  CHECK(factory.Add("QueueDataset", "streams its files, pass by pass", MakeQueue).ok());
  CHECK(factory.Add("InMemoryDataset", "holds and shuffles rows", MakeInMemory).ok());
  CHECK(factory.Add("FileInstantDataset", "maps binary files", MakeFileInstant).ok());
  return factory;
}

Result<std::unique_ptr<Dataset>> DatasetFactory::Create(std::string_view name, const DataFeedDesc& desc,
                                                        std::vector<std::string> files, const DataFeedFactory& feeds,
                                                        const DatasetSettings& settings) const {
  MR_ASSIGN(const DatasetMaker* maker, Get(name).Context("dataset.class_name"));
  VLOG(3) << name << ": files num: " << files.size();
  return CaughtMaking("the dataset \"" + std::string(name) + "\"",
                      [&] { return (*maker)(desc, std::move(files), feeds, settings); });
}

}  // namespace millrace
