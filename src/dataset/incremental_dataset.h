#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace millrace {

/// The input of one pass of an IncrementalDataset.
struct DatasetPass {
  std::string name;
  std::vector<std::string> files;
};

/// A dataset whose passes have their own files, for example days. The dataset of a pass is created before the pass and
/// released after it. During a pass, the next one is loaded in the background if it is held in memory.
///
/// Call PreparePass, then use the pass like that of any dataset. Files and rows of a batch refer to its pass.
class IncrementalDataset final : public Dataset, public PassPreparation, public BadLineCounts {
 public:
  /// Creates the dataset of a pass by number; all must have `schema`.
  using Maker = std::function<Result<std::unique_ptr<Dataset>>(int64_t pass, std::vector<std::string> files)>;

  IncrementalDataset(SlotSchema schema, std::vector<DatasetPass> passes, Maker make);
  ~IncrementalDataset() override;

  Status PreparePass(int64_t pass, std::stop_token stop) override;
  int64_t RowsInMemory() const override;
  /// Fails with kInvalidConfig unless this pass is prepared.
  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override;
  /// Includes the statistics of loading the pass.
  Result<PassStats> EndPass() override;
  const std::vector<std::string>& files() const override { return files_; }
  const SlotSchema& schema() const override { return schema_; }
  std::map<std::string, int64_t> BadLinesWithin(const ConsumedRanges& trained) const override;

 private:
  /// A pass and its dataset.
  struct Day {
    int64_t pass = -1;
    std::unique_ptr<Dataset> dataset;
    bool is_preloading = false;
  };
  Result<Day> MakeDay(int64_t pass) const;

  const SlotSchema schema_;
  const std::vector<DatasetPass> passes_;
  const Maker make_;
  std::vector<std::string> files_;
  Day current_;
  Day next_;
  std::unique_ptr<Dataset> ended_;  ///< dataset of the last pass, kept for its bad-line counts
  PassStats load_;
};

}  // namespace millrace
