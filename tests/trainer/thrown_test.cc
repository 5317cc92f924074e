// What is thrown in a thread of a run is the run's failure: memory that ran out, or a mistake.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <new>
#include <span>
#include <stdexcept>
#include <thread>

#include "data_feed.pb.h"
#include "device_worker/hogwild_worker.h"
#include "e2e/reader_job.h"
#include "e2e/small_job.h"
#include "job/fetch_handler.h"
#include "reader/csv_reader.h"
#include "threads_now.h"
#include "trainer/builtin_trainers.h"
#include "trainer/default_environment.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kRows = 32 * 60;
constexpr char kNoMemory[] = "no memory for ";
constexpr char kIsKept[] = "what was trained before is kept: --resume=auto goes on from step ";

/// Throws when it is called for the last time of `calls`; never when that is 0.
class Fuse {
 public:
  void Set(int calls, std::function<void()> burn) {
    left_ = calls;
    burn_ = std::move(burn);
  }
  void Step() {
    if (left_.fetch_sub(1) == 1) burn_();
  }

 private:
  std::atomic<int> left_{0};
  std::function<void()> burn_;
};

Fuse in_training;    // the sources of "ThrowingDataset"
Fuse in_evaluation;  // the same
Fuse in_begin;       // beginnings of passes of "ThrowingDataset"
Fuse in_end;         // their ends
Fuse in_start;       // beginnings of passes of a "ThrowingWorker"
Fuse in_feed;        // lines of "ThrowingFeed"
Fuse in_reader;      // records of the format "throwing"
std::atomic<int> observed{0};

void RunOutOfMemory() { throw std::bad_alloc(); }
void Mistake() { throw std::logic_error("no idea"); }

/// A QueueDataset whose sources throw.
class ThrowingDataset final : public Dataset {
 public:
  ThrowingDataset(std::unique_ptr<Dataset> real, Fuse& fuse) : real_(std::move(real)), fuse_(&fuse) {}

  static Result<std::unique_ptr<Dataset>> Make(const DataFeedDesc& desc, std::vector<std::string> files,
                                               const DataFeedFactory& feeds, const DatasetSettings& settings) {
    Fuse& fuse = files.size() == 1 ? in_evaluation : in_training;
    MR_ASSIGN(std::unique_ptr<Dataset> real,
              DatasetFactory::Builtin().Create("QueueDataset", desc, std::move(files), feeds, settings));
    return std::unique_ptr<Dataset>(std::make_unique<ThrowingDataset>(std::move(real), fuse));
  }

  Status BeginPass(const PassOptions& options) override {
    in_begin.Step();
    MR_TRY(real_->BeginPass(options));
    sources_.clear();
    for (int i = 0; i < options.workers; ++i) sources_.emplace_back(real_->source(i), *fuse_);
    return Status::Ok();
  }
  BatchSource& source(int worker) override { return sources_[static_cast<size_t>(worker)]; }
  Result<PassStats> EndPass() override {
    in_end.Step();
    return real_->EndPass();
  }
  const std::vector<std::string>& files() const override { return real_->files(); }
  const SlotSchema& schema() const override { return real_->schema(); }

 private:
  class Source final : public BatchSource {
   public:
    Source(BatchSource& real, Fuse& fuse) : real_(&real), fuse_(&fuse) {}
    Result<BatchPtr> Next(std::stop_token stop) override {
      fuse_->Step();
      return real_->Next(std::move(stop));
    }

   private:
    BatchSource* real_;
    Fuse* fuse_;
  };

  std::unique_ptr<Dataset> real_;
  Fuse* fuse_;
  std::vector<Source> sources_;
};

/// A HogwildWorker that throws before it trains.
class ThrowingWorker final : public DeviceWorker {
 public:
  explicit ThrowingWorker(WorkerParts parts) : real_(MakeHogwildWorker(std::move(parts))) {}

  static std::unique_ptr<DeviceWorker> Make(WorkerParts parts) {
    return std::make_unique<ThrowingWorker>(std::move(parts));
  }

  Status Train(BatchSource& source, std::stop_token stop) override { return real_->Train(source, std::move(stop)); }
  const ConsumedRanges& consumed() const override { return real_->consumed(); }
  const WorkerReport& report() const override { return real_->report(); }
  void StartPass(int64_t earlier_batches) override {
    in_start.Step();
    real_->StartPass(earlier_batches);
  }

 private:
  std::unique_ptr<DeviceWorker> real_;
};

/// A MultiSlotDataFeed whose lines throw.
class ThrowingFeed final : public DataFeed {
 public:
  explicit ThrowingFeed(std::unique_ptr<DataFeed> real) : real_(std::move(real)) {}

  static Result<std::unique_ptr<DataFeed>> Make(const SlotSchema& schema, const DataFeedDesc& desc) {
    MR_ASSIGN(std::unique_ptr<DataFeed> real, DataFeedFactory::Builtin().Create("MultiSlotDataFeed", schema, desc));
    return std::unique_ptr<DataFeed>(std::make_unique<ThrowingFeed>(std::move(real)));
  }

  Status Attach(SlotBatch* batch) override { return real_->Attach(batch); }
  Status Detach() override { return real_->Detach(); }
  int rows() const override { return real_->rows(); }
  Result<LineResult> ParseLine(std::string_view line) override {
    in_feed.Step();
    return real_->ParseLine(line);
  }
  const LineError& error() const override { return real_->error(); }
  const ValueCounters& counters() const override { return real_->counters(); }

 private:
  std::unique_ptr<DataFeed> real_;
};

/// The reader of a CSV file whose records throw.
class ThrowingReader final : public FileReader {
 public:
  ThrowingReader(const std::string& file, std::unique_ptr<FileReader> real)
      : FileReader(file, real->shapes()), real_(std::move(real)) {}

  static Result<std::unique_ptr<FileReader>> Open(const std::string& file, const std::vector<TensorSpec>& shapes) {
    MR_ASSIGN(std::unique_ptr<FileReader> real, CsvFormat().open(file, shapes));
    return std::unique_ptr<FileReader>(std::make_unique<ThrowingReader>(file, std::move(real)));
  }

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    in_reader.Step();
    return real_->ReadNext(out, stop);
  }
  Status Rewind() override { return real_->ReInit(); }

  std::unique_ptr<FileReader> real_;
};

Fuse in_metric;  // batches of "AUC"

class ThrowingMetric final : public Metric {
 public:
  int size() const override { return 1; }
  void Add(const MetricRows&, MetricSums&) const override { in_metric.Step(); }
  double Compute(std::span<const double>) const override { return 0; }
};

const Environment& ThrowingEnvironment() {
  static const Environment environment = [] {
    Environment made = MakeDefaultEnvironment().value();
    EXPECT_TRUE(made.datasets.Add("ThrowingDataset", "throws", ThrowingDataset::Make).ok());
    EXPECT_TRUE(made.feeds.Add("ThrowingFeed", "throws", {ThrowingFeed::Make}).ok());
    EXPECT_TRUE(made.readers.Add({"throwing", {}, "throws", ThrowingReader::Open}).ok());
    EXPECT_TRUE(made.workers.Add("ThrowingWorker", "throws", ThrowingWorker::Make).ok());
    made.metrics = MetricRegistry();
    EXPECT_TRUE(made.metrics
                    .Add("AUC", "throws",
                         {MetricLabels::kAny, MetricBetter::kHigher,
                          [] { return std::unique_ptr<Metric>(std::make_unique<ThrowingMetric>()); }})
                    .ok());
    for (const auto& [name, doc, info] : DefaultEnvironment().metrics.entries()) {
      if (name == "AUC") continue;
      EXPECT_TRUE(made.metrics.Add(name, doc, info).ok());
    }
    return made;
  }();
  return environment;
}

class ThrowingHandler final : public FetchHandler {
 public:
  std::map<std::string, std::string> variables() const override { return {{"loss", variable}}; }
  double period_seconds() const override { return 0; }
  Status Handle(const std::map<std::string, const Tensor*>&) override {
    ++observed;
    fuse.Step();
    return Status::Ok();
  }
  Fuse fuse;
  std::string variable = "loss";
};

class KeptSteps final : public Checkpointer {
 public:
  double SecondsToSave() override { return 0; }
  Status Save(const RunState& state, const CheckpointReason&, const std::function<Status()>& check) override {
    MR_TRY(check());
    fuse.Step();
    steps.push_back(state.step);
    return Status::Ok();
  }
  Fuse fuse;
  std::vector<int64_t> steps;
};

class ThrownRun {
 protected:
  ThrownRun() {
    for (Fuse* fuse : {&in_training, &in_evaluation, &in_begin, &in_end, &in_start, &in_feed, &in_reader, &in_metric}) {
      fuse->Set(0, nullptr);
    }
    observed = 0;
  }

  /// The failure of a run, all of whose threads are gone by then.
  Status TrainFile(const std::string& file, const std::vector<std::string>& overrides) {
    ConfigRequest request;
    request.file = file;
    request.overrides = overrides;
    request.known = NamesOf(ThrowingEnvironment());
    MR_ASSIGN(LoadedConfig config, LoadTrainerDesc(request));
    MR_ASSIGN(auto job, CompiledJob::Create(std::move(config), ThrowingEnvironment(), "", WatchedBy(handler_)));
    MR_ASSIGN(auto session, JobSession::Create(std::move(job), {.fetch_handler = &handler_}));
    const int before = ThreadsNow();
    MR_TRY(session->InitParameters());
    Status status;
    {
      MR_ASSIGN(const std::unique_ptr<Trainer> trainer, CreateTrainer(*session, {&saved_, nullptr, nullptr, {}}));
      status = trainer->Run({}).status();
    }
    session.reset();  // the readers go
    EXPECT_EQ(ThreadsOnce(before), before);
    return status;
  }

  /// A run that ran out of memory for `what` says so, and `end` of what is kept: checkpoints of `steps`, and none of
  /// what a failed batch left.
  void ExpectNoMemory(const Status& status, const std::string& what, const std::string& end,
                      const std::vector<int64_t>& steps) const {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(kNoMemory + what), HasSubstr(end)));
    EXPECT_EQ(saved_.steps, steps);
  }

  ThrowingHandler handler_;
  KeptSteps saved_;
};

/// One for each trainer of datasets.
class ThrownTest : public ThrownRun, public testing::TestWithParam<const char*> {
 protected:
  Status Train(const std::string& text, const std::vector<std::string>& overrides = {"update_mode=SERIAL"}) {
    return TrainFile(small_.DeepJob(std::string(GetParam()) + text), overrides);
  }

  const SmallJob small_{kRows, 3};
};

TEST_P(ThrownTest, AnObserverWithoutMemoryEndsTheRunBehindItsLastCheckpoint) {
  handler_.fuse.Set(20, RunOutOfMemory);
  const Status status = Train("checkpoint { every_steps: 8 }");
  ExpectNoMemory(status, "training: smaller batches", "the checkpoint of step 16 is from before that", {8, 16});
}

TEST_P(ThrownTest, AMetricWithoutMemoryEndsTheRunBehindItsLastCheckpoint) {
  in_metric.Set(20, RunOutOfMemory);
  const Status status = Train("checkpoint { every_steps: 8 }");
  ExpectNoMemory(status, "training: smaller batches", "the checkpoint of step 16 is from before that", {8, 16});
}

TEST_P(ThrownTest, AMetricWithoutMemoryEndsTheOtherWorkersToo) {
  in_metric.Set(100, RunOutOfMemory);
  const Status status = Train("epochs: 100000 checkpoint { every_epochs: 0 }", {"thread_num=3"});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(saved_.steps, ElementsAre());
}

TEST_P(ThrownTest, AMistakeInAnObserverEndsTheOtherWorkersToo) {
  handler_.fuse.Set(3, Mistake);
  const Status status = Train("epochs: 100000 checkpoint { every_epochs: 0 }", {"thread_num=3"});
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("training threw std::logic_error: no idea"));
  EXPECT_THAT(saved_.steps, ElementsAre());
}

TEST_P(ThrownTest, ASourceWithoutMemoryLeavesACheckpointOfTheBatchesBeforeIt) {
  in_training.Set(21, RunOutOfMemory);
  const Status status = Train("dataset { class_name: \"ThrowingDataset\" }");
  ExpectNoMemory(status, "training", std::string(kIsKept) + "20", {20});
}

TEST_P(ThrownTest, ASourceWithoutMemoryEndsTheOtherWorkersToo) {
  in_training.Set(40, RunOutOfMemory);
  const Status status = Train("epochs: 100000 dataset { class_name: \"ThrowingDataset\" }", {"thread_num=3"});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr(kIsKept));
  EXPECT_EQ(saved_.steps.size(), 1U);
}

TEST_P(ThrownTest, AnEndOfAPassWithoutMemoryLeavesACheckpointOfItsBatches) {
  in_end.Set(1, RunOutOfMemory);
  const Status status = Train("dataset { class_name: \"ThrowingDataset\" }");
  ExpectNoMemory(status, "", std::string(kIsKept) + "60", {60});
}

TEST_P(ThrownTest, ABeginningOfAPassWithoutMemoryLeavesACheckpointOfThePassBefore) {
  in_begin.Set(2, RunOutOfMemory);
  const Status status = Train("epochs: 2 checkpoint { every_epochs: 0 } dataset { class_name: \"ThrowingDataset\" }");
  ExpectNoMemory(status, "", std::string(kIsKept) + "60", {60});
}

TEST_P(ThrownTest, AFeedWithoutMemoryLeavesACheckpointOfTheBatchesBeforeIt) {
  in_feed.Set(kRows - 1, [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (observed == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    RunOutOfMemory();
  });
  const Status status = Train("", {"update_mode=SERIAL", "data_desc.name=ThrowingFeed"});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr(std::string(kNoMemory) + "reading rows"));
  EXPECT_THAT(status.message(), HasSubstr(kIsKept));
  EXPECT_EQ(saved_.steps.size(), 1U);
}

TEST_P(ThrownTest, AFeedWithoutMemoryEndsTheLoadIntoMemory) {
  for (const char* preload : {"false", "true"}) {
    in_feed.Set(100, RunOutOfMemory);
    const Status status = Train("dataset { class_name: \"InMemoryDataset\" }",
                                {"data_desc.name=ThrowingFeed", std::string("dataset.preload=") + preload});
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr(std::string(kNoMemory) + "reading rows"));
  }
  EXPECT_THAT(saved_.steps, ElementsAre());
}

TEST_P(ThrownTest, AnEvaluationWithoutMemoryLeavesACheckpointOfWhatWasTrained) {
  in_evaluation.Set(3, RunOutOfMemory);
  const Status status = Train("dataset { class_name: \"ThrowingDataset\" } eval { every_steps: 12 filelist: \"" +
                              small_.files()[0] + "\" }");
  ExpectNoMemory(status, "an evaluation", std::string(kIsKept) + "12", {12});
}

INSTANTIATE_TEST_SUITE_P(
    Trainers, ThrownTest,
    testing::Values("",
                    "class_name: \"PipelineTrainer\" device_worker_name: \"SectionWorker\" section_param { "
                    "section_config { section_out_var_names: \"h.0\" } section_config {} num_microbatches: 4 } "),
    [](const auto& trainer) { return trainer.index == 0 ? "MultiTrainer" : "PipelineTrainer"; });

class ThrownByWorker : public ThrownRun, public testing::Test {
 protected:
  const SmallJob small_{kRows, 3};
};

TEST_F(ThrownByWorker, WhereItBeginsAPassLeavesNoOtherWorkerWaiting) {
  in_start.Set(3, RunOutOfMemory);
  const Status status = TrainFile(
      small_.DeepJob("device_worker_name: \"ThrowingWorker\" checkpoint { every_steps: 8 }"), {"thread_num=3"});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(saved_.steps, ElementsAre());
}

/// A program that feeds itself: with a loop, and run batch by batch.
class ThrownInReaderProgram : public ThrownRun, public testing::TestWithParam<bool> {
 protected:
  ThrownInReaderProgram() { handler_.variable = "cost"; }

  Status Train(const std::string& text) {
    const std::string job = data_.Copy("has_next", text, {{data_.file(1), "throwing:" + data_.file(1)}});
    if (!GetParam()) data_.ReadWithoutLoop();
    return TrainFile(job, {});
  }

  const ReaderJob data_{400};  // 25 batches of 32 rows an epoch, half of them of each file
};

TEST_P(ThrownInReaderProgram, AnObserverWithoutMemoryEndsTheRunBehindItsLastCheckpoint) {
  handler_.fuse.Set(20, RunOutOfMemory);
  const Status status = Train("checkpoint { every_steps: 8 }");
  ExpectNoMemory(status, "training: smaller batches", "the checkpoint of step 16 is from before that", {8, 16});
}

TEST_P(ThrownInReaderProgram, AMistakeInAnObserverIsNotBlamedOnTheLoop) {
  handler_.fuse.Set(3, [] { throw std::invalid_argument("no idea"); });
  const Status status = Train("");
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("training threw std::invalid_argument: no idea"));
  EXPECT_THAT(saved_.steps, ElementsAre());
}

TEST_P(ThrownInReaderProgram, AReaderWithoutMemoryLeavesACheckpointOfTheBatchesBeforeIt) {
  in_reader.Set(120, RunOutOfMemory);
  const Status status = Train("");
  ExpectNoMemory(status, "reading ahead", std::string(kIsKept) + "16", {16});
}

TEST_P(ThrownInReaderProgram, ACheckpointWithoutMemoryIsNotBlamedOnTheLoop) {
  saved_.fuse.Set(2, RunOutOfMemory);
  const Status status = Train("checkpoint { every_steps: 8 }");
  ExpectNoMemory(status, "training: smaller batches", "", {8});
}

INSTANTIATE_TEST_SUITE_P(Programs, ThrownInReaderProgram, testing::Values(true, false),
                         [](const auto& loop) { return loop.param ? "Loop" : "BatchByBatch"; });

}  // namespace
}  // namespace millrace
