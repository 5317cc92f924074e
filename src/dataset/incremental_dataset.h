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

/// A dataset whose passes have files of their own: days. Each is a dataset of some class, made when its turn comes and
/// given back after its pass; while a pass is read, the next one, if it is held in memory, is loaded in the background.
///
/// PreparePass, then a pass as of any dataset. Files and rows of a batch are those of its pass.
class IncrementalDataset final : public Dataset, public PassPreparation, public BadLineCounts {
 public:
  /// Makes the dataset of a pass by its number; all must have `schema`.
  using Maker = std::function<Result<std::unique_ptr<Dataset>>(int64_t pass, std::vector<std::string> files)>;

  IncrementalDataset(SlotSchema schema, std::vector<DatasetPass> passes, Maker make);
  ~IncrementalDataset() override;

  Status PreparePass(int64_t pass, std::stop_token stop) override;
  int64_t RowsInMemory() const override;
  /// kInvalidConfig for another pass than the prepared one.
  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override;
  /// With what loading the pass met.
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
  std::unique_ptr<Dataset> ended_;  ///< that of the last pass: its bad lines may still be asked for
  PassStats load_;
};

}  // namespace millrace
