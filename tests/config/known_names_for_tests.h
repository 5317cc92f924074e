#pragma once

#include <gtest/gtest.h>

#include "config/known_names.h"
#include "config/model_judge.h"
#include "datafeed/data_feed.h"
#include "model/model_compiler.h"
#include "ops/builtin_ops.h"

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
  return known;
}

/// The judgement of the compiler over all operators of Millrace.
inline ModelJudge JudgeForTests() {
  return [](const ModelDesc& model, const SlotSchema& slots, bool is_of_program) {
    static const OpRegistry ops = [] {
      OpRegistry registry;
      RegisterBuiltinOps(registry);
      EXPECT_TRUE(registry.Seal().ok());
      return registry;
    }();
    return JudgeModel(model, slots, ops, ModelParts::Builtin(), is_of_program);
  };
}

}  // namespace millrace
