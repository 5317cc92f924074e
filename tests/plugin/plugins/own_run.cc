// A dataset, a worker and a trainer of a user's own: CountingDataset makes the rows that its files ask for,
// AlternateWorker trains every other batch, and SpokenTrainer says what it runs.

#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "batch/batch_pool.h"
#include "data_feed.pb.h"
#include "device_worker/hogwild_worker.h"
#include "job/trainer.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

/// Files "BEGIN END": for each number n of [BEGIN, END) a row with label n % 2 and the ids n % 2 + 1 and n.
class CountingDataset final : public Dataset {
 public:
  CountingDataset(SlotSchema schema, std::vector<std::string> files, const DataFeedDesc& desc)
      : schema_(std::move(schema)), files_(std::move(files)), desc_(desc), pool_(schema_) {}

  Status BeginPass(const PassOptions& options) override {
    if (options.workers != 1) return InvalidConfig("a CountingDataset counts for one worker");
    if (feed_ == nullptr) {
      MR_ASSIGN(feed_, DataFeedFactory::Builtin().Create("MultiSlotDataFeed", schema_, desc_));
    }
    next_.clear();
    for (const std::string& file : files_) {
      std::ifstream in(file);
      Range range;
      if (!(in >> range.begin >> range.end)) return BadData(file + ": no two numbers");
      next_.push_back(range);
    }
    rows_ = 0;
    source_ = Source(this);
    return Status::Ok();
  }
  BatchSource& source(int) override { return source_; }
  Result<PassStats> EndPass() override {
    PassStats stats;
    stats.files = static_cast<int64_t>(files_.size());
    stats.rows = rows_;
    return stats;
  }
  const std::vector<std::string>& files() const override { return files_; }
  const SlotSchema& schema() const override { return schema_; }

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  class Source final : public BatchSource {
   public:
    explicit Source(CountingDataset* dataset) : dataset_(dataset) {}
    Result<BatchPtr> Next(std::stop_token stop) override {
      if (stop.stop_requested()) return Cancelled("stopped between batches");
      return dataset_->NextBatch();
    }

   private:
    CountingDataset* dataset_;
  };

  Result<BatchPtr> NextBatch() {
    for (uint32_t file = 0; file < next_.size(); ++file) {
      Range& range = next_[file];
      if (range.begin == range.end) continue;
      BatchPtr batch = pool_.Take();
      const uint64_t first = range.begin;
      MR_TRY(feed_->Attach(batch.get()));
      while (range.begin < range.end && feed_->rows() < desc_.batch_size()) {
        const std::string odd = std::to_string(range.begin % 2);
        const std::string line = "1 " + odd + " 2 " + std::to_string(range.begin % 2 + 1) + " " +
                                 std::to_string(range.begin) + std::string(kLinePadding, '\0');
        MR_ASSIGN(const LineResult result,
                  feed_->ParseLine(std::string_view(line).substr(0, line.size() - kLinePadding)));
        if (result != LineResult::kRow) return BadData("a counted row does not fit the slots");
        batch->mutable_origins().push_back({file, ++range.begin});
      }
      MR_TRY(feed_->Detach());
      batch->mutable_spans().push_back({file, first, range.begin});
      rows_ += batch->rows();
      return batch;
    }
    return BatchPtr();
  }

  const SlotSchema schema_;
  const std::vector<std::string> files_;
  const DataFeedDesc desc_;
  BatchPool pool_;
  std::unique_ptr<DataFeed> feed_;
  std::vector<Range> next_;
  int64_t rows_ = 0;
  Source source_{this};
};

Result<std::unique_ptr<Dataset>> MakeCounting(const DataFeedDesc& desc, std::vector<std::string> files,
                                              const DataFeedFactory&, const DatasetSettings&) {
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(desc));
  return std::unique_ptr<Dataset>(std::make_unique<CountingDataset>(std::move(schema), std::move(files), desc));
}

/// Leaves out the second, the fourth, ... batch.
class AlternateWorker final : public DeviceWorker {
 public:
  explicit AlternateWorker(WorkerParts parts) : worker_(MakeHogwildWorker(std::move(parts))) {}

  Status Train(BatchSource& source, std::stop_token stop) override {
    EveryOther every_other(source);
    return worker_->Train(every_other, std::move(stop));
  }
  const ConsumedRanges& consumed() const override { return worker_->consumed(); }
  const WorkerReport& report() const override { return worker_->report(); }
  void StartPass(int64_t earlier_batches) override { worker_->StartPass(earlier_batches); }

 private:
  class EveryOther final : public BatchSource {
   public:
    explicit EveryOther(BatchSource& source) : source_(&source) {}
    Result<BatchPtr> Next(std::stop_token stop) override {
      if (++taken_ > 1) MR_TRY(source_->Next(stop).status());
      return source_->Next(std::move(stop));
    }

   private:
    BatchSource* source_;
    int64_t taken_ = 0;
  };

  std::unique_ptr<DeviceWorker> worker_;
};

std::unique_ptr<DeviceWorker> MakeAlternate(WorkerParts parts) {
  return std::make_unique<AlternateWorker>(std::move(parts));
}

class SpokenTrainer final : public Trainer {
 public:
  explicit SpokenTrainer(std::unique_ptr<Trainer> trainer) : trainer_(std::move(trainer)) {}

  Result<RunReport> Run(std::stop_token stop) override {
    std::fputs("SpokenTrainer begins\n", stderr);
    Result<RunReport> report = trainer_->Run(std::move(stop));
    std::fprintf(stderr, "SpokenTrainer ends %s\n", report.ok() ? "well" : "badly");
    return report;
  }

 private:
  std::unique_ptr<Trainer> trainer_;
};

Result<std::unique_ptr<Trainer>> MakeSpoken(JobSession& session, TrainerHooks hooks) {
  MR_ASSIGN(const TrainerMaker* make, session.job().environment().trainers.Get("MultiTrainer"));
  MR_ASSIGN(std::unique_ptr<Trainer> trainer, (*make)(session, std::move(hooks)));
  return std::unique_ptr<Trainer>(std::make_unique<SpokenTrainer>(std::move(trainer)));
}

class LateTrainer final : public Trainer {
 public:
  Result<RunReport> Run(std::stop_token) override { throw std::runtime_error("no training today"); }
};

Result<std::unique_ptr<Trainer>> MakeLate(JobSession&, TrainerHooks) {
  return std::unique_ptr<Trainer>(std::make_unique<LateTrainer>());
}

Result<std::unique_ptr<Dataset>> ThrowDataset(const DataFeedDesc&, std::vector<std::string>, const DataFeedFactory&,
                                              const DatasetSettings&) {
  throw std::runtime_error("no dataset today");
}
Result<std::unique_ptr<Dataset>> NoDataset(const DataFeedDesc&, std::vector<std::string>, const DataFeedFactory&,
                                           const DatasetSettings&) {
  return std::unique_ptr<Dataset>();
}
std::unique_ptr<DeviceWorker> NoWorker(WorkerParts) { return nullptr; }
Result<std::unique_ptr<Trainer>> NoTrainer(JobSession&, TrainerHooks) { return std::unique_ptr<Trainer>(); }
std::unique_ptr<DeviceWorker> ThrowWorker(WorkerParts) { throw std::runtime_error("no worker today"); }
Result<std::unique_ptr<Trainer>> ThrowTrainer(JobSession&, TrainerHooks) {
  throw std::runtime_error("no trainer today");
}

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  MR_TRY(registries.datasets.Add("CountingDataset", "counts from one number to another", MakeCounting));
  MR_TRY(registries.workers.Add("AlternateWorker", "trains every other batch", MakeAlternate));
  MR_TRY(registries.trainers.Add("SpokenTrainer", "a MultiTrainer that says what it does", MakeSpoken));
  MR_TRY(registries.trainers.Add("LateTrainer", "throws when it runs", MakeLate));
  MR_TRY(registries.datasets.Add("NoDataset", "makes none", NoDataset));
  MR_TRY(registries.workers.Add("NoWorker", "makes none", NoWorker));
  MR_TRY(registries.trainers.Add("NoTrainer", "makes none", NoTrainer));
  MR_TRY(registries.datasets.Add("ThrowingDataset", "throws", ThrowDataset));
  MR_TRY(registries.workers.Add("ThrowingWorker", "throws", ThrowWorker));
  return registries.trainers.Add("ThrowingTrainer", "throws", ThrowTrainer);
}
