#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/registry.h"
#include "datafeed/data_feed.h"
#include "dataset/dataset.h"
#include "dataset/in_memory_dataset.h"
#include "dataset/queue_dataset.h"

namespace millrace {

class EvalDesc_Set;
class TrainerDesc;

/// Settings of a dataset apart from its DataFeedDesc and its files. The fields below apply to an InMemoryDataset.
struct DatasetSettings : QueueDatasetOptions {
  int queue_num = 0;           ///< DatasetDesc.queue_num; 0: one for each worker
  bool local_shuffle = false;  ///< before each pass: DatasetDesc.local_shuffle or global_shuffle
  InMemoryRows rows;
  LineDraw sets;  ///< how evaluations draw their share of the lines

  /// The settings of a job; the caller sets threads and output_dir. Lines are drawn by DrawnBy::kName, or by the rules
  /// of earlier checkpoints if `as_before`.
  static DatasetSettings FromDesc(const TrainerDesc& desc, bool as_before = false);
  /// Settings for evaluation: no shuffle, every line, examples rather than page views. For a set that is a share of the
  /// training rows, only that share is read: `set` is its index in desc.eval.set, or -1 if it has files.
  DatasetSettings ForEvaluation(const TrainerDesc& desc, int set) const;
};

/// Limits data_desc to the rows to train on if eval.set.since splits them.
void ChooseTrainedRows(const TrainerDesc& desc, DataFeedDesc* feed);
/// Limits data_desc to the rows of an evaluation set: its index in desc.eval.set, or -1 if it has files.
void ChooseRowsOfSet(const TrainerDesc& desc, int set, DataFeedDesc* feed);
/// Message for an evaluation set whose `since` excludes every row, with advice.
std::string NoRowSince(const EvalDesc_Set& set);
/// The rows that sets with `since` remove from the training, as a suffix of a message; empty if none.
std::string RowsNotTrained(const TrainerDesc& desc);

/// Creates a dataset of a class. Fails with kInvalidConfig for a setting that the class does not support.
using DatasetMaker = Result<std::unique_ptr<Dataset>> (*)(const DataFeedDesc& desc, std::vector<std::string> files,
                                                          const DataFeedFactory& feeds,
                                                          const DatasetSettings& settings);

/// Dataset classes by name: DatasetDesc.class_name. A dataset that can be loaded into memory also implements
/// InMemoryControl (dynamic_cast).
class DatasetFactory : public Registry<DatasetMaker> {
 public:
  DatasetFactory() : Registry("dataset of the class") {}
  /// Contains "QueueDataset", "InMemoryDataset" and "FileInstantDataset".
  static DatasetFactory Builtin();
  /// Fails with kInvalidConfig for an unknown name, listing all names; otherwise with the errors of the class.
  Result<std::unique_ptr<Dataset>> Create(std::string_view name, const DataFeedDesc& desc,
                                          std::vector<std::string> files, const DataFeedFactory& feeds,
                                          const DatasetSettings& settings) const;
};

}  // namespace millrace
