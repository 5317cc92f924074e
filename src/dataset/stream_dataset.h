#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/row_exchange.h"

namespace millrace {

/// The streams that a StreamDataset reads.
struct StreamShare {
  int streams = 1;         ///< of the job
  int first = 0;           ///< streams [first, first + count) are read here
  int count = 1;           ///< 0: reads nothing
  int workers = 0;         ///< sources of the share, each reading all its streams in turn; 0: one per stream, in line
                           ///< order
  bool in_memory = false;  ///< the streams' datasets are InMemoryControls; positions are rows
  /// For InMemoryDatasets: the first pass after a load starts with this shuffle; each stream then has rows of all
  /// files.
  std::optional<RowShuffle> shuffle = {};
};

/// Deals the files of a job to a fixed number of streams and reads some of them: file i belongs to stream i % streams.
/// A stream delivers its files and lines in order, in batches that do not depend on the readers of other streams.
///
/// Source i is stream first + i, or, with StreamShare::workers, source i of each stream in turn; PassOptions::workers
/// is ignored. Files and positions of batches refer to the whole list; for rows in memory, the source of a position is
/// the stream number. Each stream is a dataset with one reading thread. A stream in memory shuffles its rows with its
/// own seed, and the StreamDataset is then an InMemoryControl. With StreamShare::shuffle, BeginPass is a collective of
/// the ranks.
class StreamDataset : public Dataset, public BadLineCounts {
 public:
  /// Creates the dataset of a stream.
  using Maker = std::function<Result<std::unique_ptr<Dataset>>(std::vector<std::string> files)>;

  /// Fails with the errors of `make`, and with kInvalidConfig if a shuffle gets anything but an InMemoryDataset.
  static Result<std::unique_ptr<Dataset>> Create(SlotSchema schema, std::vector<std::string> files,
                                                 const StreamShare& share, const Maker& make);

  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override { return sources_[static_cast<size_t>(worker)]; }
  Result<PassStats> EndPass() override;
  const std::vector<std::string>& files() const override { return files_; }
  const SlotSchema& schema() const override { return schema_; }
  std::map<std::string, int64_t> BadLinesWithin(const ConsumedRanges& trained) const override;

 protected:
  class Stream {
   public:
    Stream(int number, const StreamShare& share, size_t files, std::unique_ptr<Dataset> dataset)
        : number_(number), share_(share), files_(files), dataset_(std::move(dataset)) {}
    /// The next batch of one of its sources, with file numbers of the whole list. Fails like BatchSource::Next.
    Result<BatchPtr> Next(int source, std::stop_token stop) const;
    /// Null for a stream without files.
    Dataset* dataset() const { return dataset_.get(); }
    /// Also null if the stream is not in memory.
    InMemoryControl* memory() const { return dynamic_cast<InMemoryControl*>(dataset_.get()); }
    /// The stream's own shuffle seed.
    uint64_t SeedOf(uint64_t seed) const;
    /// The part of `all`, positions of the whole list, that belongs to this stream.
    ConsumedRanges OwnOf(const ConsumedRanges& all) const;

   private:
    uint32_t InWholeList(uint32_t file) const {
      if (share_.shuffle) return file;  // such rows come with it
      return file * static_cast<uint32_t>(share_.streams) + static_cast<uint32_t>(number_);
    }
    int number_;
    StreamShare share_;
    size_t files_;
    std::unique_ptr<Dataset> dataset_;
  };

  StreamDataset(SlotSchema schema, std::vector<std::string> files)
      : schema_(std::move(schema)), files_(std::move(files)) {}
  const std::vector<Stream>& streams() const { return streams_; }

 private:
  class Source final : public BatchSource {
   public:
    /// Reads source `number` of `streams`.
    Source(std::span<const Stream> streams, int number) : streams_(streams), number_(number) {}
    Result<BatchPtr> Next(std::stop_token stop) override;
    void BeginPass() { at_ = 0; }

   private:
    std::span<const Stream> streams_;
    int number_;
    size_t at_ = 0;
  };

  const SlotSchema schema_;
  const std::vector<std::string> files_;
  int workers_ = 0;
  std::vector<Stream> streams_;
  std::vector<Source> sources_;
};

}  // namespace millrace
