#include "dataset/stream_dataset.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/elapsed.h"
#include "core/hash.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

/// A StreamDataset whose streams keep their rows in memory.
class InMemoryStreams final : public StreamDataset, public InMemoryControl {
 public:
  InMemoryStreams(SlotSchema schema, std::vector<std::string> files, const StreamShare& share)
      : StreamDataset(std::move(schema), std::move(files)), share_(share) {}

  Status BeginPass(const PassOptions& options) override {
    if (share_.shuffle && !is_shuffled_) MR_TRY(Shuffle());
    return StreamDataset::BeginPass(options);
  }
  Result<PassStats> EndPass() override {
    MR_ASSIGN(PassStats stats, StreamDataset::EndPass());
    AddPassStats(std::exchange(shuffled_, {}), &stats);
    return stats;
  }

  Result<PassStats> LoadIntoMemory(std::stop_token stop) override {
    stop_ = stop;
    return SumOver([&](InMemoryControl& stream) { return stream.LoadIntoMemory(stop); });
  }
  Status PreloadIntoMemory(std::stop_token stop) override {
    stop_ = stop;
    return ForEach([&](InMemoryControl& stream, const Stream&) { return stream.PreloadIntoMemory(stop); });
  }
  Result<PassStats> WaitPreloadDone() override {
    return SumOver([](InMemoryControl& stream) { return stream.WaitPreloadDone(); });
  }
  Status LocalShuffle(uint64_t seed) override {
    return ForEach([&](InMemoryControl& stream, const Stream& of) { return stream.LocalShuffle(of.SeedOf(seed)); });
  }
  void ReleaseMemory() override {
    for (const Stream& stream : streams()) {
      if (stream.memory() != nullptr) stream.memory()->ReleaseMemory();
    }
    is_shuffled_ = false;
  }
  bool IsLoaded() const override {
    for (const Stream& stream : streams()) {
      if (stream.memory() != nullptr && !stream.memory()->IsLoaded()) return false;
    }
    return true;
  }
  int64_t MemoryDataSize() const override {
    int64_t rows = 0;
    for (const Stream& stream : streams()) rows += stream.memory() != nullptr ? stream.memory()->MemoryDataSize() : 0;
    return rows;
  }

 private:
  Status Shuffle() {
    const Clock::time_point start = Clock::now();
    std::vector<InMemoryDataset*> datasets;
    // An empty share has no dataset.
    for (const Stream& stream : streams()) {
      if (auto* dataset = dynamic_cast<InMemoryDataset*>(stream.dataset())) datasets.push_back(dataset);
    }
    Status shuffled = ExchangeRows(*share_.shuffle, datasets, share_.first, files(), &shuffled_.counters, stop_);
    if (!shuffled.ok()) {
      ReleaseMemory();
      return shuffled;
    }
    shuffled_.stage_seconds["shuffle"] += SecondsSince(start);
    is_shuffled_ = true;
    return Status::Ok();
  }

  template <class Call>
  Status ForEach(const Call& call) {
    for (const Stream& stream : streams()) {
      if (stream.memory() != nullptr) MR_TRY(call(*stream.memory(), stream));
    }
    return Status::Ok();
  }
  template <class Call>
  Result<PassStats> SumOver(const Call& call) {
    PassStats all;
    MR_TRY(ForEach([&](InMemoryControl& stream, const Stream&) -> Status {
      MR_ASSIGN(const PassStats part, call(stream));
      AddPassStats(part, &all);
      return Status::Ok();
    }));
    return all;
  }

  const StreamShare share_;
  std::stop_token stop_;  ///< of the load; it also cancels the shuffle
  bool is_shuffled_ = false;
  PassStats shuffled_;  ///< statistics of the shuffle, reported with the pass that started with it
};

Result<std::unique_ptr<Dataset>> StreamDataset::Create(SlotSchema schema, std::vector<std::string> files,
                                                       const StreamShare& share, const Maker& make) {
  std::unique_ptr<StreamDataset> dataset;
  if (share.in_memory) {
    dataset = std::make_unique<InMemoryStreams>(std::move(schema), std::move(files), share);
  } else {
    dataset.reset(new StreamDataset(std::move(schema), std::move(files)));
  }
  for (int number = share.first; number < share.first + share.count; ++number) {
    std::vector<std::string> own;
    for (size_t i = static_cast<size_t>(number); i < dataset->files_.size(); i += static_cast<size_t>(share.streams)) {
      own.push_back(dataset->files_[i]);
    }
    const size_t count = own.size();
    std::unique_ptr<Dataset> stream;
    if (count > 0 || share.shuffle) {
      MR_ASSIGN(stream, make(std::move(own)));
    }
    if (share.shuffle && dynamic_cast<InMemoryDataset*>(stream.get()) == nullptr) {
      return InvalidConfig("dataset.global_shuffle: only rows of an InMemoryDataset go from rank to rank");
    }
    dataset->streams_.emplace_back(number, share, count, std::move(stream));
  }
  // An empty share reads nothing.
  if (share.count == 0) dataset->streams_.emplace_back(share.first, share, 0, nullptr);
  dataset->workers_ = share.workers;
  const std::span<const Stream> streams = dataset->streams_;
  for (int i = 0; i < share.workers; ++i) dataset->sources_.emplace_back(streams, i);
  for (size_t s = 0; share.workers == 0 && s < streams.size(); ++s) {
    dataset->sources_.emplace_back(streams.subspan(s, 1), 0);
  }
  return std::unique_ptr<Dataset>(std::move(dataset));
}

Status StreamDataset::BeginPass(const PassOptions& options) {
  for (Source& source : sources_) source.BeginPass();
  for (const Stream& stream : streams_) {
    if (stream.dataset() == nullptr) continue;
    PassOptions own = options;
    own.workers = std::max(1, workers_);
    own.ordered = workers_ == 0 || options.ordered;
    own.bad_lines = nullptr;
    own.seed = stream.SeedOf(options.seed);
    const ConsumedRanges trained = options.trained == nullptr ? ConsumedRanges() : stream.OwnOf(*options.trained);
    own.trained = &trained;
    MR_TRY(stream.dataset()->BeginPass(own));
  }
  return Status::Ok();
}

Result<PassStats> StreamDataset::EndPass() {
  PassStats all;
  Status failure;
  for (const Stream& stream : streams_) {
    if (stream.dataset() == nullptr) continue;
    Result<PassStats> part = stream.dataset()->EndPass();
    if (part.ok()) {
      AddPassStats(*part, &all);
    } else if (failure.ok()) {
      failure = std::move(part).status();
    }
  }
  MR_TRY(std::move(failure));
  return all;
}

std::map<std::string, int64_t> StreamDataset::BadLinesWithin(const ConsumedRanges& trained) const {
  std::map<std::string, int64_t> all;
  for (const Stream& stream : streams_) {
    const auto* counts = dynamic_cast<const BadLineCounts*>(stream.dataset());
    if (counts == nullptr) continue;
    for (const auto& [kind, count] : counts->BadLinesWithin(stream.OwnOf(trained))) all[kind] += count;
  }
  return all;
}

Result<BatchPtr> StreamDataset::Source::Next(std::stop_token stop) {
  for (; at_ < streams_.size(); ++at_) {
    MR_ASSIGN(BatchPtr batch, streams_[at_].Next(number_, stop));
    if (batch != nullptr) return batch;
  }
  return BatchPtr();
}

Result<BatchPtr> StreamDataset::Stream::Next(int source, std::stop_token stop) const {
  if (dataset_ == nullptr) return BatchPtr();
  MR_ASSIGN(BatchPtr batch, dataset_->source(source).Next(std::move(stop)));
  if (batch == nullptr) return batch;
  for (BatchSpan& span : batch->mutable_spans()) {
    span.source = share_.in_memory ? static_cast<uint32_t>(number_) : InWholeList(span.source);
  }
  for (RowOrigin& origin : batch->mutable_origins()) origin.file = InWholeList(origin.file);
  return batch;
}

uint64_t StreamDataset::Stream::SeedOf(uint64_t seed) const {
  return HashedNumber(seed, static_cast<uint64_t>(number_));
}

ConsumedRanges StreamDataset::Stream::OwnOf(const ConsumedRanges& all) const {
  ConsumedRanges own;
  if (share_.in_memory) {
    for (const ConsumedRanges::Interval& interval : all.Intervals(static_cast<uint32_t>(number_))) {
      own.Add({0, interval.begin, interval.end});
    }
    return own;
  }
  for (uint32_t file = 0; file < files_; ++file) {
    for (const ConsumedRanges::Interval& interval : all.Intervals(InWholeList(file))) {
      own.Add({file, interval.begin, interval.end});
    }
  }
  return own;
}

}  // namespace millrace
