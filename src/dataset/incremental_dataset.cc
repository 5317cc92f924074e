#include "dataset/incremental_dataset.h"

namespace millrace {

IncrementalDataset::IncrementalDataset(SlotSchema schema, std::vector<DatasetPass> passes, Maker make)
    : schema_(std::move(schema)), passes_(std::move(passes)), make_(std::move(make)) {}

IncrementalDataset::~IncrementalDataset() = default;

Result<IncrementalDataset::Day> IncrementalDataset::MakeDay(int64_t pass) const {
  const DatasetPass& wanted = passes_[static_cast<size_t>(pass)];
  Day day;
  day.pass = pass;
  Result<std::unique_ptr<Dataset>> dataset = make_(pass, wanted.files);
  if (!dataset.ok()) return std::move(dataset).status().Context("pass \"" + wanted.name + "\"");
  day.dataset = std::move(*dataset);
  return day;
}

Status IncrementalDataset::PreparePass(int64_t pass, std::stop_token stop) {
  if (pass < 0 || pass >= static_cast<int64_t>(passes_.size())) {
    return Internal("there is no pass " + std::to_string(pass) + " of " + std::to_string(passes_.size()));
  }
  ended_ = nullptr;
  current_ = std::exchange(next_, Day());
  if (current_.pass != pass) {
    MR_ASSIGN(current_, MakeDay(pass));
  }
  files_ = current_.dataset->files();
  load_ = {};
  if (auto* memory = dynamic_cast<InMemoryControl*>(current_.dataset.get())) {
    Result<PassStats> load = current_.is_preloading ? memory->WaitPreloadDone() : memory->LoadIntoMemory(stop);
    if (!load.ok()) return std::move(load).status().Context("pass \"" + passes_[static_cast<size_t>(pass)].name + "\"");
    load_ = std::move(*load);
  }
  if (pass + 1 == static_cast<int64_t>(passes_.size())) return Status::Ok();
  MR_ASSIGN(next_, MakeDay(pass + 1));
  if (auto* memory = dynamic_cast<InMemoryControl*>(next_.dataset.get())) {
    MR_TRY(memory->PreloadIntoMemory(std::move(stop)));
    next_.is_preloading = true;
  }
  return Status::Ok();
}

int64_t IncrementalDataset::RowsInMemory() const {
  const auto* memory = dynamic_cast<const InMemoryControl*>(current_.dataset.get());
  return memory != nullptr ? memory->MemoryDataSize() : 0;
}

std::map<std::string, int64_t> IncrementalDataset::BadLinesWithin(const ConsumedRanges& trained) const {
  const Dataset* dataset = current_.dataset != nullptr ? current_.dataset.get() : ended_.get();
  const auto* counts = dynamic_cast<const BadLineCounts*>(dataset);
  return counts != nullptr ? counts->BadLinesWithin(trained) : std::map<std::string, int64_t>();
}

Status IncrementalDataset::BeginPass(const PassOptions& options) {
  if (current_.pass != options.pass) {
    return InvalidConfig("pass " + std::to_string(options.pass) + " was not prepared: call PreparePass before");
  }
  return current_.dataset->BeginPass(options);
}

BatchSource& IncrementalDataset::source(int worker) { return current_.dataset->source(worker); }

Result<PassStats> IncrementalDataset::EndPass() {
  if (current_.dataset == nullptr) return Internal("EndPass without BeginPass");
  MR_ASSIGN(PassStats stats, current_.dataset->EndPass());
  const bool counts = dynamic_cast<const BadLineCounts*>(current_.dataset.get()) != nullptr;
  ended_ = counts ? std::move(current_.dataset) : nullptr;  // rows in memory are released
  current_ = {};
  load_.rows = 0;  // only trained rows count
  AddPassStats(std::exchange(load_, PassStats()), &stats);
  return stats;
}

}  // namespace millrace
