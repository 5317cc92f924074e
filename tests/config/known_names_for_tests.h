#pragma once

#include "config/known_names.h"
#include "datafeed/data_feed.h"

namespace millrace {

inline KnownNames KnownNamesForTests() {
  KnownNames known;
  known.trainers = {"MultiTrainer", "PipelineTrainer"};
  known.device_workers = {"HogwildWorker", "SectionWorker"};
  known.datasets = {"QueueDataset", "InMemoryDataset", "FileInstantDataset"};
  const DataFeedFactory feeds = DataFeedFactory::Builtin();
  known.data_feeds = feeds.names();
  known.formats = feeds.formats();
  known.tables = {"HashTable"};
  known.metrics = {"AUC", "LOGLOSS", "NORMALIZED_ENTROPY", "CALIBRATION", "ACCURACY", "GAUC", "MAE", "RMSE"};
  known.losses = {"CROSS_ENTROPY", "LOG_LOSS", "SIGMOID_CROSS_ENTROPY", "SOFTMAX_CROSS_ENTROPY", "SQUARED_ERROR"};
  known.layers = {"embedding", "fc", "op"};
  known.initializers = {"constant", "uniform"};
  known.operators = {"relu", "elementwise_mul", "matmul_v2"};
  return known;
}

}  // namespace millrace
