#include "dataset/stream_dataset.h"

#include <utility>

namespace millrace {
namespace {

constexpr size_t kFirstBadLines = 5;

}  // namespace

Result<std::unique_ptr<Dataset>> StreamDataset::Create(SlotSchema schema, std::vector<std::string> files,
                                                       const StreamShare& share, const Maker& make) {
  std::unique_ptr<StreamDataset> dataset(new StreamDataset(std::move(schema), std::move(files)));
  for (int number = share.first; number < share.first + share.count; ++number) {
    std::vector<std::string> own;
    for (size_t i = static_cast<size_t>(number); i < dataset->files_.size(); i += static_cast<size_t>(share.streams)) {
      own.push_back(dataset->files_[i]);
    }
    const size_t count = own.size();
    std::unique_ptr<Dataset> stream;
    if (count > 0) {
      MR_ASSIGN(stream, make(std::move(own)));
    }
    dataset->sources_.emplace_back(number, share.streams, count, std::move(stream));
  }
  return std::unique_ptr<Dataset>(std::move(dataset));
}

Status StreamDataset::BeginPass(const PassOptions& options) {
  for (const Stream& stream : sources_) {
    if (stream.dataset() == nullptr) continue;
    PassOptions own = options;
    own.workers = 1;
    own.ordered = true;
    own.bad_lines = nullptr;
    const ConsumedRanges trained = options.trained == nullptr ? ConsumedRanges() : stream.OwnOf(*options.trained);
    own.trained = &trained;
    MR_TRY(stream.dataset()->BeginPass(own));
  }
  return Status::Ok();
}

Result<PassStats> StreamDataset::EndPass() {
  PassStats all;
  Status failure;
  for (const Stream& stream : sources_) {
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
  for (const Stream& stream : sources_) {
    const auto* counts = dynamic_cast<const BadLineCounts*>(stream.dataset());
    if (counts == nullptr) continue;
    for (const auto& [kind, count] : counts->BadLinesWithin(stream.OwnOf(trained))) all[kind] += count;
  }
  return all;
}

Result<BatchPtr> StreamDataset::Stream::Next(std::stop_token stop) {
  if (dataset_ == nullptr) return BatchPtr();
  MR_ASSIGN(BatchPtr batch, dataset_->source(0).Next(std::move(stop)));
  if (batch == nullptr) return batch;
  for (BatchSpan& span : batch->mutable_spans()) span.source = InWholeList(span.source);
  for (RowOrigin& origin : batch->mutable_origins()) origin.file = InWholeList(origin.file);
  return batch;
}

ConsumedRanges StreamDataset::Stream::OwnOf(const ConsumedRanges& all) const {
  ConsumedRanges own;
  for (uint32_t file = 0; file < files_; ++file) {
    for (const ConsumedRanges::Interval& interval : all.Intervals(InWholeList(file))) {
      own.Add({file, interval.begin, interval.end});
    }
  }
  return own;
}

void AddPassStats(const PassStats& part, PassStats* all) {
  all->files += part.files;
  all->bytes += part.bytes;
  all->lines += part.lines;
  all->rows += part.rows;
  all->bad_lines += part.bad_lines;
  for (const std::string& line : part.first_bad_lines) {
    if (all->first_bad_lines.size() < kFirstBadLines) all->first_bad_lines.push_back(line);
  }
  if (all->quarantine_path.empty()) all->quarantine_path = part.quarantine_path;
  for (const auto& [kind, count] : part.counters) all->counters[kind] += count;
  for (const auto& [stage, seconds] : part.stage_seconds) all->stage_seconds[stage] += seconds;
}

}  // namespace millrace
