#include "dataset/statistics_pass.h"

#include <memory>
#include <utility>

#include "data_feed.pb.h"
#include "datafeed/statistics_feeds.h"
#include "dataset/queue_dataset.h"

namespace millrace {

Status TakeStatistics(const StatisticsPass& pass, std::stop_token stop, FeatureStates* states) {
  GatheredStatistics gathered;
  MR_ASSIGN(const DataFeedFactory feeds, StatisticsFeeds(*pass.feeds, *pass.desc, &gathered));
  {
    QueueDatasetOptions options;
    options.threads = pass.threads;
    options.stop = stop;
    options.held = pass.held;
    MR_ASSIGN(const std::unique_ptr<QueueDataset> dataset,
              QueueDataset::Create(StatisticsDesc(*pass.desc), *pass.files, feeds, std::move(options)));
    MR_TRY(dataset->BeginPass({}));
    int64_t rows = 0;
    while (true) {
      MR_ASSIGN(const BatchPtr batch, dataset->source(0).Next(stop));
      if (batch == nullptr) break;
      rows += batch->rows();
      if (pass.on_rows != nullptr) pass.on_rows(rows);
    }
    MR_TRY(dataset->EndPass().status());
  }
  return gathered.Finish(states).Context("data_desc");
}

}  // namespace millrace
