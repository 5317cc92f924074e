#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "datafeed/data_feed.h"
#include "dataset/dataset.h"

namespace millrace {

class DataFeedDesc;

/// Reads binary files (docs/formats/file_instant.md) from the system's page cache straight into batches.
///
/// There are no readers and no commands: each worker takes the next rows of the list's files and copies them. Finding
/// where they end is a walk over their counts under a lock, so one large file keeps every worker busy. Batches hold
/// consecutive rows of one file: those at a file's end may not be full (with drop_last they are left out), and they are
/// the same for any number of workers; one worker gets them in order. A span is rows of a file. The first failure ends
/// the pass for every worker.
class FileInstantDataset final : public Dataset {
 public:
  /// Checks the desc (kInvalidConfig for what only text has) and every file; reads nothing. `feeds` makes desc.name, by
  /// default MultiSlotFileInstantDataFeed.
  static Result<std::unique_ptr<FileInstantDataset>> Create(const DataFeedDesc& desc, std::vector<std::string> files,
                                                            const DataFeedFactory& feeds,
                                                            const std::stop_token& stop = {});
  ~FileInstantDataset() override;

  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override;
  Result<PassStats> EndPass() override;
  const std::vector<std::string>& files() const override;
  const SlotSchema& schema() const override;

 private:
  struct Impl;
  explicit FileInstantDataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
