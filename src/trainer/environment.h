#pragma once

#include <memory>
#include <string>
#include <vector>

#include "datafeed/data_feed.h"
#include "dataset/dataset_factory.h"
#include "device_worker/device_worker.h"
#include "metrics/metric_list.h"
#include "program/op_registry.h"
#include "reader/reader_registry.h"
#include "runtime/device.h"

namespace millrace {

class Job;
class Trainer;
struct TrainerHooks;

/// Makes a trainer of a class.
using TrainerMaker = Result<std::unique_ptr<Trainer>> (*)(Job& job, TrainerHooks hooks);

/// Trainer classes by name: TrainerDesc.class_name.
class TrainerRegistry : public Registry<TrainerMaker> {
 public:
  TrainerRegistry() : Registry("trainer of the class") {}
};

/// Everything that a job may use by name. Filled once (app/default_environment.cc; tests make smaller ones), then
/// constant; outlives every job.
struct Environment {
  OpRegistry ops;
  ReaderRegistry readers;
  DataFeedFactory feeds;
  DatasetFactory datasets;
  WorkerRegistry workers;
  TrainerRegistry trainers;
  MetricRegistry metrics;
  const Device* device = &Cpu();     ///< what jobs run on
  std::vector<std::string> plugins;  ///< files of the plugins that were loaded, absolute and without links
};

}  // namespace millrace
