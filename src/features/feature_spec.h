#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data_feed.pb.h"

namespace millrace {

/// An error in a field of a DataFeedDesc, with the field's path: "feature[2].bucketize".
struct FeatureMistake {
  std::string path;
  std::string message;
};

/// A feature of the job, checked, with ranges expanded and defaults filled in.
struct FeatureSpec {
  std::string name;
  const FeatureDesc* desc = nullptr;  ///< in the DataFeedDesc that was read
  std::string path;                   ///< "feature[2]"
  std::vector<std::string> columns;   ///< names
  std::vector<int> of;                ///< indices of earlier features
  bool makes_ids = false;             ///< floats otherwise
  bool is_dense = false;
  bool needs_statistics = false;  ///< computed from the training files before use

  /// Values per row if dense.
  int width() const { return static_cast<int>(columns.size() + of.size()); }
};

/// Reads `desc.feature` and `desc.csv` and appends an error for each faulty field. The result points into `desc` and is
/// complete only without errors. Allocates; called once per job.
std::vector<FeatureSpec> ReadFeatures(const DataFeedDesc& desc, std::vector<FeatureMistake>* mistakes);

/// The columns used by slots of these features, also through features used by a cross. Unique and sorted.
std::vector<std::string> ColumnsOfSlots(const DataFeedDesc& desc,
                                        const std::function<bool(const FeatureDesc&)>& is_wanted);
/// The columns whose values are words: hashed, looked up in vocabularies or crossed, so "7.0" differs from "7". Sorted.
std::vector<std::string> WordColumns(const DataFeedDesc& desc);
/// The columns of times used by date_part, with their format.
std::map<std::string, DatePartStep::Format> ClockColumns(const DataFeedDesc& desc);
/// The columns that can contain times: words and the columns of date_part. Sorted.
std::vector<std::string> TimeColumns(const DataFeedDesc& desc);

/// The slots of the features, in order.
MultiSlotDesc SlotsOfFeatures(const std::vector<FeatureSpec>& features);

/// The columns of files without header, ranges expanded; empty if files have headers. Appends errors.
std::vector<std::string> CsvColumnNames(const DataFeedDesc& desc, std::vector<FeatureMistake>* mistakes);

}  // namespace millrace
