#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace millrace {

/// Which streams of all a StreamDataset reads, and how.
struct StreamShare {
  int streams = 1;  ///< of the job
  int first = 0;    ///< streams [first, first + count) are read here
  int count = 1;
  bool in_memory = false;  ///< the streams' datasets are InMemoryControls, whose positions are rows
};

/// Deals the files of a job to a fixed number of streams, in turn, and reads some of them: file i is of stream
/// i % streams. A stream gives its files and their lines in order, as batches that do not depend on who reads the
/// others.
///
/// Source i is stream first + i, whatever PassOptions::workers says. Files and positions of batches are those of the
/// whole list; of rows in memory, the source of a position is the number of the stream. Each stream is a dataset of its
/// own, with one reading thread. One that holds rows in memory shuffles them by itself, by a seed of its own; the
/// StreamDataset is an InMemoryControl then.
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
  /// A stream, and its batches with the files' numbers in the whole list.
  class Stream final : public BatchSource {
   public:
    Stream(int number, const StreamShare& share, size_t files, std::unique_ptr<Dataset> dataset)
        : number_(number), share_(share), files_(files), dataset_(std::move(dataset)) {}
    Result<BatchPtr> Next(std::stop_token stop) override;
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
      return file * static_cast<uint32_t>(share_.streams) + static_cast<uint32_t>(number_);
    }
    int number_;
    StreamShare share_;
    size_t files_;
    std::unique_ptr<Dataset> dataset_;
  };

  StreamDataset(SlotSchema schema, std::vector<std::string> files)
      : schema_(std::move(schema)), files_(std::move(files)) {}
  const std::vector<Stream>& streams() const { return sources_; }

 private:
  const SlotSchema schema_;
  const std::vector<std::string> files_;
  std::vector<Stream> sources_;
};

/// Adds what a part of a pass met to what others did.
void AddPassStats(const PassStats& part, PassStats* all);

}  // namespace millrace
