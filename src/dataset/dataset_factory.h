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

/// What a dataset is made of, apart from its DataFeedDesc and its files: what a QueueDataset is, and of an
/// InMemoryDataset what is below.
struct DatasetSettings : QueueDatasetOptions {
  int queue_num = 0;           ///< DatasetDesc.queue_num; 0: one for each worker
  bool local_shuffle = false;  ///< before each pass: DatasetDesc.local_shuffle or global_shuffle
  InMemoryRows rows;
  LineDraw sets;  ///< which lines evaluations have a share of

  /// What a job asks for; threads and output_dir are the caller's to say.
  /// Lines are drawn by DrawnBy::kName, or `as_before` by the rules of earlier checkpoints.
  static DatasetSettings FromDesc(const TrainerDesc& desc, bool as_before = false);
  /// For evaluation: no shuffle, every line, examples rather than page views. Of a set that is a share of the rows that
  /// are trained, these: `set` is its number in desc.eval.set; -1: it has files.
  DatasetSettings ForEvaluation(const TrainerDesc& desc, int set) const;
};

/// The rows of data_desc that are trained on, where eval.set.since parts them: writes into a data_desc which.
void ChooseTrainedRows(const TrainerDesc& desc, DataFeedDesc* feed);
/// Likewise those of a set of evaluations: its number in desc.eval.set; -1: it has files.
void ChooseRowsOfSet(const TrainerDesc& desc, int set, DataFeedDesc* feed);
/// What is wrong with a set of the rows since a moment that has none, and what to do.
std::string NoRowSince(const EvalDesc_Set& set);
/// Which rows sets since a moment take away from the training, for a message behind others; empty: none do.
std::string RowsNotTrained(const TrainerDesc& desc);

/// Makes a dataset of a class, or says what in the desc it cannot follow.
using DatasetMaker = Result<std::unique_ptr<Dataset>> (*)(const DataFeedDesc& desc, std::vector<std::string> files,
                                                          const DataFeedFactory& feeds,
                                                          const DatasetSettings& settings);

/// Dataset classes by name: DatasetDesc.class_name. A dataset that can be loaded into memory is an InMemoryControl, too
/// (dynamic_cast).
class DatasetFactory : public Registry<DatasetMaker> {
 public:
  DatasetFactory() : Registry("dataset of the class") {}
  /// With "QueueDataset", "InMemoryDataset" and "FileInstantDataset".
  static DatasetFactory Builtin();
  /// kInvalidConfig for an unknown name, with all names that there are; otherwise the errors of the class.
  Result<std::unique_ptr<Dataset>> Create(std::string_view name, const DataFeedDesc& desc,
                                          std::vector<std::string> files, const DataFeedFactory& feeds,
                                          const DatasetSettings& settings) const;
};

}  // namespace millrace
