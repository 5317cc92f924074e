#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "datafeed/data_feed.h"
#include "dataset/dataset_factory.h"
#include "device_worker/device_worker.h"
#include "metrics/metric_list.h"
#include "model/model_parts.h"
#include "program/op_registry.h"
#include "reader/reader_registry.h"
#include "runtime/device.h"
#include "table/table_factory.h"

namespace millrace {

class JobSession;
class Trainer;
struct TrainerHooks;

/// Makes a trainer of a class.
using TrainerMaker = Result<std::unique_ptr<Trainer>> (*)(JobSession& session, TrainerHooks hooks);

/// Trainer classes by name: TrainerDesc.class_name.
class TrainerRegistry : public Registry<TrainerMaker> {
 public:
  TrainerRegistry() : Registry("trainer of the class") {}
};

/// What jobs use by name, apart from operators. From ModelParts: `layers`, by the class_name of a `custom` layer,
/// `losses`, by loss.class_name, and `initializers`, by the class_name of `init { custom {} }`.
struct NamedParts : ModelParts {
  ReaderRegistry readers;    ///< file formats of readers
  DataFeedFactory feeds;     ///< how lines become rows, by data_desc.name
  DatasetFactory datasets;   ///< where batches come from, by dataset.class_name
  TableFactory tables;       ///< where rows by key lie, by table.class_name
  WorkerRegistry workers;    ///< the loop of one thread, by device_worker_name
  TrainerRegistry trainers;  ///< who owns the threads, by class_name
  MetricRegistry metrics;    ///< what is measured, by metric.class_name

  /// The members that are a Registry<T>, for what is done to each of them.
  auto registries() { return std::tie(datasets, tables, workers, trainers, metrics, layers, losses, initializers); }
};

/// What jobs use by name and plugins may add to. A plugin fills empty ones of its own, and the program takes over all
/// of it, or, when a name is taken or an operator incomplete, nothing.
struct Registries : NamedParts {
  OpRegistry ops;  ///< operators, optimizers among them: Add("my_op")
};

/// Everything that a job may use by name. Filled once (trainer/default_environment.cc; tests make smaller ones), then
/// constant; outlives every job.
struct Environment : Registries {
  const Device* device = &Cpu();     ///< what jobs run on
  std::vector<std::string> plugins;  ///< files of the plugins that were loaded, absolute and without links
};

}  // namespace millrace
