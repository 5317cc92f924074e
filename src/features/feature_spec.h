#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data_feed.pb.h"

namespace millrace {

/// What is wrong with a field of a DataFeedDesc, by its path in it: "feature[2].bucketize".
struct FeatureMistake {
  std::string path;
  std::string message;
};

/// A feature as the job describes it, checked, with ranges written out and defaults filled in.
struct FeatureSpec {
  std::string name;
  const FeatureDesc* desc = nullptr;  ///< of the DataFeedDesc that was read
  std::string path;                   ///< "feature[2]"
  std::vector<std::string> columns;   ///< names
  std::vector<int> of;                ///< places of features above
  bool makes_ids = false;             ///< floats otherwise
  bool is_dense = false;
  bool needs_statistics = false;  ///< of the training files, before it can be used

  /// Values of a row, when it is dense.
  int width() const { return static_cast<int>(columns.size() + of.size()); }
};

/// Reads `desc.feature` and `desc.csv`; appends what is wrong, each at its field. What is returned keeps pointers to
/// `desc`, and is whole where there was no mistake. Allocates; once a job.
std::vector<FeatureSpec> ReadFeatures(const DataFeedDesc& desc, std::vector<FeatureMistake>* mistakes);

/// Columns that the slots of these features are made of, also through features that a cross takes. Each once, sorted.
std::vector<std::string> ColumnsOfSlots(const DataFeedDesc& desc,
                                        const std::function<bool(const FeatureDesc&)>& is_wanted);
/// Columns whose texts are words: what hashes, vocabularies and crosses look up, for which "7.0" is not "7". Sorted.
std::vector<std::string> WordColumns(const DataFeedDesc& desc);
/// Columns of times of which date_part takes parts, and how it reads them.
std::map<std::string, DatePartStep::Format> ClockColumns(const DataFeedDesc& desc);
/// Columns that may have times: those of words, and of clocks. Sorted.
std::vector<std::string> TimeColumns(const DataFeedDesc& desc);

/// The slots that the features are, in their order.
MultiSlotDesc SlotsOfFeatures(const std::vector<FeatureSpec>& features);

/// The columns of files without header, ranges written out; empty where files have one. Appends mistakes.
std::vector<std::string> CsvColumnNames(const DataFeedDesc& desc, std::vector<FeatureMistake>* mistakes);

}  // namespace millrace
