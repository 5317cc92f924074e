#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace millrace {

class DataFeedDesc;

struct InMemoryDatasetOptions {
  int threads = 1;              ///< that load, when desc.thread_num is not set
  int queue_num = 0;            ///< output and consume channels; 0: as many as the pass has workers
  bool local_shuffle = false;   ///< BeginPass shuffles by (PassOptions::seed, PassOptions::pass)
  std::string output_dir = {};  ///< where QUARANTINE writes bad_lines.txt when the policy names no file
};

/// Holds all rows of its files, packed, and hands them out in batches, pass after pass, in any order that a seed gives.
///
/// After loading, rows stand in (file, line) order, however many threads read. A shuffle permutes that order: the
/// result depends on the seed and the rows alone. Batch k of a pass is rows [k * batch_size, (k + 1) * batch_size) of
/// the order, so at most one is not full (none with drop_last), for any number of workers; its span is these
/// positions. One worker gets the batches in order.
///
/// Blocks of row handles travel as in Paddle: from the input channel to `queue_num` output channels, whence workers
/// take them, into as many consume channels; a pass ends by swapping the two. Not thread-safe but for the sources and
/// the preloading thread.
class InMemoryDataset final : public Dataset, public InMemoryControl {
 public:
  /// Checks the desc and every file (missing, folder, no name: one message for all); reads nothing.
  static Result<std::unique_ptr<InMemoryDataset>> Create(const DataFeedDesc& desc, std::vector<std::string> files,
                                                         InMemoryDatasetOptions options);
  ~InMemoryDataset() override;

  /// Waits for a preload. kInvalidConfig when nothing was loaded.
  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override;
  Result<PassStats> EndPass() override;
  const std::vector<std::string>& files() const override;
  const SlotSchema& schema() const override;

  Result<PassStats> LoadIntoMemory(std::stop_token stop) override;
  Status PreloadIntoMemory(std::stop_token stop) override;
  Result<PassStats> WaitPreloadDone() override;
  /// Starts from (file, line) order, whatever was shuffled before. Not during a pass.
  Status LocalShuffle(uint64_t seed) override;
  /// Shuffles over all machines of the job; with one machine, the same as LocalShuffle.
  Status GlobalShuffle(uint64_t seed) { return LocalShuffle(seed); }
  void ReleaseMemory() override;
  int64_t MemoryDataSize() const override;
  int64_t MemoryBytes() const override;

 private:
  struct Impl;
  explicit InMemoryDataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
