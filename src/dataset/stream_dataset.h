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

/// Which streams of all a StreamDataset reads, and how.
struct StreamShare {
  int streams = 1;         ///< of the job
  int first = 0;           ///< streams [first, first + count) are read here
  int count = 1;           ///< 0: nothing is read
  int workers = 0;         ///< sources of the share, each of which reads all its streams, one behind the other;
                           ///< 0: one a stream, in the order of lines
  bool in_memory = false;  ///< the streams' datasets are InMemoryControls, whose positions are rows
  /// Of InMemoryDatasets: the first pass after a load begins with it, and each stream then has rows of all files.
  std::optional<RowShuffle> shuffle = {};
};

/// Deals the files of a job to a fixed number of streams, in turn, and reads some of them: file i is of stream
/// i % streams. A stream gives its files and their lines in order, as batches that do not depend on who reads the
/// others.
///
/// Source i is stream first + i, or, with StreamShare::workers, source i of each stream in turn, whatever
/// PassOptions::workers says. Files and positions of batches are those of the whole list; of rows in memory, the source
/// of a position is the number of the stream. Each stream is a dataset of its own, with one reading thread. One that
/// holds rows in memory shuffles them by itself, by a seed of its own; the StreamDataset is an InMemoryControl then.
/// With StreamShare::shuffle BeginPass is a collective of the ranks.
class StreamDataset : public Dataset, public BadLineCounts {
 public:
  /// Makes the dataset of a stream.
  using Maker = std::function<Result<std::unique_ptr<Dataset>>(std::vector<std::string> files)>;

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
    /// The next batch of one of its sources, with the files' numbers in the whole list.
    Result<BatchPtr> Next(int source, std::stop_token stop) const;
    /// Null: a stream without files.
    Dataset* dataset() const { return dataset_.get(); }
    /// Null as well where the stream is not in memory.
    InMemoryControl* memory() const { return dynamic_cast<InMemoryControl*>(dataset_.get()); }
    /// What its shuffle begins with, other than that of other streams.
    uint64_t SeedOf(uint64_t seed) const;
    /// Of positions of the whole list those of this stream.
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
