#pragma once

#include "config/known_names.h"

namespace millrace {

inline KnownNames KnownNamesForTests() {
  KnownNames known;
  known.trainers = {"MultiTrainer", "PipelineTrainer"};
  known.device_workers = {"HogwildWorker", "SectionWorker"};
  known.datasets = {"QueueDataset", "InMemoryDataset", "FileInstantDataset"};
  known.data_feeds = {"MultiSlotDataFeed",
                      "MultiSlotInMemoryDataFeed",
                      "SlotRecordInMemoryDataFeed",
                      "MultiSlotFileInstantDataFeed",
                      "csv",
                      "tfrecord",
                      "ofrecord",
                      "recordio"};
  known.tables = {"HashTable"};
  known.operators = {"relu", "elementwise_mul", "matmul_v2"};
  return known;
}

}  // namespace millrace
