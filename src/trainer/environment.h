#pragma once

#include <string>
#include <vector>

#include "datafeed/data_feed.h"
#include "dataset/dataset_factory.h"
#include "device_worker/device_worker.h"
#include "program/op_registry.h"
#include "reader/reader_registry.h"

namespace millrace {

/// Everything that a job may use by name. Filled once (app/default_environment.cc; tests make smaller ones), then
/// constant; outlives every job.
struct Environment {
  OpRegistry ops;
  ReaderRegistry readers;
  DataFeedFactory feeds;
  DatasetFactory datasets;
  WorkerRegistry workers;
  std::vector<std::string> plugins;  ///< files of the plugins that were loaded, absolute and without links
};

}  // namespace millrace
