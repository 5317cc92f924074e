#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "datafeed/data_feed.h"
#include "dataset/dataset.h"

namespace millrace {

class DataFeedDesc;

/// Reads binary files (docs/formats/file_instant.md) from the page cache directly into batches.
///
/// Uses neither readers nor commands: each worker takes the next rows of the file list and copies them. Finding the
/// end of a batch walks over counts under a lock, so one large file keeps every worker busy. A batch holds consecutive
/// rows of one file. Batches at the end of a file may not be full and are dropped with drop_last. Batches do not depend
/// on the number of workers; one worker gets them in order. A span is a row range of a file. The first failure ends the
/// pass for every worker.
class FileInstantDataset final : public Dataset {
 public:
  /// Checks the desc and every file without reading. `feeds` creates desc.name, by default
  /// MultiSlotFileInstantDataFeed. Fails with kInvalidConfig for a wrong setting, one that needs text or a file that
  /// cannot be mapped, kCancelled after a stop request, and with the errors of InputOpener::CheckFiles.
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
