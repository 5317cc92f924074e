#pragma once

#include <iterator>

#include "config/feed_names.h"
#include "config/known_names.h"

namespace millrace {

inline KnownNames KnownNamesForTests() {
  KnownNames known;
  known.trainers = {"MultiTrainer", "PipelineTrainer"};
  known.device_workers = {"HogwildWorker", "SectionWorker"};
  known.datasets = {"QueueDataset", "InMemoryDataset", "FileInstantDataset"};
  for (const OwnFeed& feed : kOwnFeeds) known.data_feeds.emplace_back(feed.name);
  known.data_feeds.insert(known.data_feeds.end(), std::begin(kFormatFeeds), std::end(kFormatFeeds));
  known.tables = {"HashTable"};
  known.metrics = {"AUC", "LOGLOSS", "NORMALIZED_ENTROPY", "CALIBRATION", "ACCURACY", "GAUC", "MAE", "RMSE"};
  known.losses = {"CROSS_ENTROPY", "LOG_LOSS", "SIGMOID_CROSS_ENTROPY", "SOFTMAX_CROSS_ENTROPY", "SQUARED_ERROR"};
  known.layers = {"embedding", "fc", "op"};
  known.initializers = {"constant", "uniform"};
  known.operators = {"relu", "elementwise_mul", "matmul_v2"};
  return known;
}

}  // namespace millrace
