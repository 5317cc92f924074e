#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace millrace {

/// Which streams of all a StreamDataset reads.
struct StreamShare {
  int streams = 1;  ///< of the job
  int first = 0;    ///< streams [first, first + count) are read here
  int count = 1;
};

/// Deals the files of a job to a fixed number of streams, in turn, and reads some of them: file i is of stream
/// i % streams. A stream gives its files and their lines in order, as batches that do not depend on who reads the
/// others.
///
/// Source i is stream first + i, whatever PassOptions::workers says. Files and positions of batches are those of the
/// whole list. Each stream is a dataset of its own, with one reading thread.
class StreamDataset final : public Dataset, public BadLineCounts {
 public:
  /// Makes the dataset of a stream, whose positions are lines of its files.
  using Maker = std::function<Result<std::unique_ptr<Dataset>>(std::vector<std::string> files)>;

  static Result<std::unique_ptr<Dataset>> Create(SlotSchema schema, std::vector<std::string> files,
                                                 const StreamShare& share, const Maker& make);

  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override { return sources_[static_cast<size_t>(worker)]; }
  Result<PassStats> EndPass() override;
  const std::vector<std::string>& files() const override { return files_; }
  const SlotSchema& schema() const override { return schema_; }
  std::map<std::string, int64_t> BadLinesWithin(const ConsumedRanges& trained) const override;

 private:
  /// A stream, and its batches with the files' numbers in the whole list.
  class Stream final : public BatchSource {
   public:
    Stream(int number, int streams, size_t files, std::unique_ptr<Dataset> dataset)
        : number_(number), streams_(streams), files_(files), dataset_(std::move(dataset)) {}
    Result<BatchPtr> Next(std::stop_token stop) override;
    /// Null: a stream without files.
    Dataset* dataset() const { return dataset_.get(); }
    /// Of positions of the whole list those of this stream.
    ConsumedRanges OwnOf(const ConsumedRanges& all) const;

   private:
    uint32_t InWholeList(uint32_t file) const {
      return file * static_cast<uint32_t>(streams_) + static_cast<uint32_t>(number_);
    }
    int number_;
    int streams_;
    size_t files_;
    std::unique_ptr<Dataset> dataset_;
  };

  StreamDataset(SlotSchema schema, std::vector<std::string> files)
      : schema_(std::move(schema)), files_(std::move(files)) {}

  const SlotSchema schema_;
  const std::vector<std::string> files_;
  std::vector<Stream> sources_;
};

/// Adds what a part of a pass met to what others did.
void AddPassStats(const PassStats& part, PassStats* all);

}  // namespace millrace
