#include "dataset/statistics_pass.h"

#include <memory>
#include <utility>

#include "data_feed.pb.h"
#include "datafeed/statistics_feeds.h"
#include "dataset/queue_dataset.h"

namespace millrace {

namespace {

std::vector<std::string> FilesHere(const StatisticsPass& pass) {
  std::vector<std::string> files;
  if (pass.ranks->rank() >= pass.readers) return files;
  const auto first = static_cast<size_t>(pass.ranks->rank());
  for (size_t i = first; i < pass.files->size(); i += static_cast<size_t>(pass.readers)) {
    files.push_back((*pass.files)[i]);
  }
  return files;
}

Status Gather(const StatisticsPass& pass, const std::stop_token& stop, GatheredStatistics* gathered) {
  const std::vector<std::string> files = FilesHere(pass);
  if (files.empty()) return Status::Ok();
  MR_ASSIGN(const DataFeedFactory feeds, StatisticsFeeds(*pass.feeds, *pass.desc, gathered));
  QueueDatasetOptions options;
  options.threads = pass.threads;
  options.stop = stop;
  options.held = pass.held;
  MR_ASSIGN(const std::unique_ptr<QueueDataset> dataset,
            QueueDataset::Create(StatisticsDesc(*pass.desc), files, feeds, std::move(options)));
  MR_TRY(dataset->BeginPass({}));
  int64_t rows = 0;
  while (true) {
    MR_ASSIGN(const BatchPtr batch, dataset->source(0).Next(stop));
    if (batch == nullptr) break;
    rows += batch->rows();
    if (pass.on_rows != nullptr) pass.on_rows(rows);
  }
  MR_ASSIGN(const PassStats read, dataset->EndPass());
  if (pass.read != nullptr) *pass.read = read;
  return Status::Ok();
}

Status AddUp(const StatisticsPass& pass, const std::vector<std::string>& others, GatheredStatistics* gathered,
             FeatureStates* states) {
  for (const std::string& other : others) MR_TRY(gathered->AddMessage(*pass.desc, other));
  return gathered->Finish(states).Context("data_desc");
}

}  // namespace

Status TakeStatistics(const StatisticsPass& pass, const std::stop_token& asked, const std::stop_token& stop,
                      FeatureStates* states) {
  GatheredStatistics gathered;
  const Status read = Gather(pass, stop, &gathered);
  RankGroup& ranks = *pass.ranks;
  MR_TRY(ranks.AgreeOnEnd(read, asked));
  std::vector<std::string> others;
  MR_TRY(ranks.ToLeader(ranks.leads() ? std::string() : gathered.Message(), &others));
  MR_TRY(ranks.Agree(ranks.leads() ? AddUp(pass, others, &gathered, states) : Status::Ok()));
  return ranks.FromLeader(states);
}

}  // namespace millrace
