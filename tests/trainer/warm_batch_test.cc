// What a worker does for a batch once it is warm, counted: it allocates nothing, takes no lock, sleeps and wakes
// nobody, and compares no strings, as a look-up by name would.

#include <glog/logging.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "core/file.h"
#include "core/hash.h"
#include "device_worker/hogwild_worker.h"
#include "threads_now.h"
#include "trainer/default_environment.h"
#include "trainer/in_process.h"
#include "warm_counter.h"

namespace millrace {
namespace {

constexpr int kBatchSize = 64;
constexpr int kBatches = 48;
constexpr int kEpochs = 3;
constexpr int kWorkers = 2;
/// Of the job below, forward and backward; and what oneDNN 2.6 does within each, for its map of arguments and its
/// scratchpad (kernels/gemm.h).
constexpr int kProducts = 9;
constexpr int kOneDnnAllocations = 9;
constexpr int kOneDnnLocks = 1;

/// First batches of all workers, over all passes.
std::atomic<int> arrivals{0};

/// Notes the counts of one worker's thread after each of its batches.
class CountAtBatches final : public BatchObserver {
 public:
  explicit CountAtBatches(int threads_without_readers) : threads_(threads_without_readers) {
    notes_.reserve(kEpochs * kBatches);
  }
  Status OnBatch(const TrainedBatch& trained) override {
    if (trained.worker_batches == 1) AwaitTheOthers();
    notes_.push_back({trained.worker_batches, WarmCountsNow()});
    return Status::Ok();
  }

  /// What the batches of pass `pass` but each worker's first took together.
  WarmCounts OfPass(int pass, int* batches) const {
    WarmCounts first;
    WarmCounts last;
    int passes = -1;
    for (const Note& note : notes_) {
      if (note.batch == 1) ++passes;
      if (passes != pass) continue;
      if (note.batch == 1) first = note.counts;
      last = note.counts;
      if (note.batch > 1) ++*batches;
    }
    return last - first;
  }

 private:
  /// Every worker has its share of every pass. And one that has to wait for input sleeps, and who hands it a batch
  /// wakes it: readers are done first.
  void AwaitTheOthers() {
    const int pass = ++passes_;
    ++arrivals;
    while (arrivals < pass * kWorkers || ThreadsNow() > threads_) std::this_thread::yield();
  }

  struct Note {
    int64_t batch;
    WarmCounts counts;
  };
  const int threads_;
  int passes_ = 0;
  std::vector<Note> notes_;
};

std::vector<std::unique_ptr<CountAtBatches>> observers;

std::unique_ptr<DeviceWorker> MakeCountedWorker(WorkerParts parts) {
  observers.push_back(std::make_unique<CountAtBatches>(ThreadsNow() + kWorkers));
  parts.frames[0].observers.push_back(observers.back().get());
  return MakeHogwildWorker(std::move(parts));
}

Environment CountingEnvironment() {
  Environment environment = MakeDefaultEnvironment().value();
  environment.workers = WorkerRegistry();
  CHECK(environment.workers.Add("HogwildWorker", "counts", MakeCountedWorker).ok());
  return environment;
}

/// Every batch holds the same lines, so that no batch is the largest so far.
std::string WriteJob(const std::string& folder, const std::string& text) {
  std::ofstream log(folder + "/log");
  for (int i = 0; i < kBatchSize * kBatches; ++i) {
    const auto row = static_cast<uint64_t>(i % kBatchSize);
    log << "1 " << row % 3 / 2 << " 2 0.5 0." << row;
    for (uint64_t slot = 0; slot < 4; ++slot) log << " 1 " << HashedNumber(slot, row) % 40 + 1;
    log << " 3 " << row + 1 << " 7 " << HashedNumber(9, row) << "\n";
  }
  const std::string path = folder + "/job.prototxt";
  std::ofstream job(path);
  job << R"(
data_desc {
  batch_size: 64 thread_num: 1
  multi_slot_desc {
    slots { name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
    slots { name: "dense" type: "float" is_used: true is_dense: true shape: [-1, 2] }
    slots { name: "C1..C5" type: "uint64" is_used: true }
  }
}
model {
  table { name: "wide" dim: 1 key: SLOT_AND_ID init { constant: 0 } optimizer { ftrl { alpha: 0.05 l1: 1 } } }
  table { name: "deep" dim: 8 key: SLOT_AND_ID init { uniform: 0.01 } optimizer { adagrad { lr: 0.05 } } }
  layer { name: "w" embedding { slots: "C1..C5" table: "wide" pool: SUM } }
  layer { name: "d" embedding { slots: "C1..C5" table: "deep" pool: AVERAGE } }
  layer { name: "x" concat { in: ["d", "dense"] } }
  layer { name: "h" fc { in: "x" units: [64, 32] act: RELU } }
  layer { name: "y" fc { in: ["h", "w"] units: 2 act: SOFTMAX } }
  loss { kind: CROSS_ENTROPY in: "y" label: "label" }
  optimizer { adagrad { lr: 0.01 initial_accumulator: 0.1 } }
  metric { kind: AUC }
  metric { kind: LOGLOSS }
}
)"
      << "filelist: \"" << folder << "/log\" epochs: " << kEpochs << " thread_num: " << kWorkers << "\n"
      << text << "\n";
  return path;
}

class WarmBatchTest : public testing::TestWithParam<const char*> {};

/// Trains the job, with `overrides`, and counts; a batch has `products` matrix products, and its operators compare
/// shapes of tensors `shapes` times.
void ExpectWarmBatches(const std::string& text, const std::vector<std::string>& overrides, int products, int shapes) {
  const TempDir folder = TempDir::Create("warm").value();
  observers.clear();
  arrivals = 0;
  const Environment environment = CountingEnvironment();
  const std::unique_ptr<JobSession> job = MakeJob(WriteJob(folder.path(), text), "", overrides, environment);
  const Result<RunReport> report = TrainJob(*job);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  ASSERT_EQ(report->state.step, kEpochs * kBatches);
  ASSERT_EQ(observers.size(), static_cast<size_t>(kWorkers));
  int counted = 0;
  for (const auto& observer : observers) {
    int batches = 0;
    const WarmCounts warm = observer->OfPass(kEpochs - 1, &batches);
    counted += batches;
    EXPECT_EQ(warm.allocations, 0);
    EXPECT_EQ(warm.locks, 0);
    EXPECT_EQ(warm.futexes, 0);
    EXPECT_LE(warm.comparisons, batches * shapes);
    EXPECT_LE(warm.one_dnn_allocations, batches * products * kOneDnnAllocations);
    EXPECT_LE(warm.one_dnn_locks, batches * products * kOneDnnLocks);
  }
  EXPECT_GE(counted, kBatches - kWorkers);
  // The counters see what the first batches do: they are taken in turns.
  int64_t cold_locks = 0;
  int batches = 0;
  for (const auto& observer : observers) cold_locks += observer->OfPass(0, &batches).locks;
  EXPECT_GT(cold_locks, 0);
}

TEST_P(WarmBatchTest, AllocatesNothingTakesNoLockAndLooksUpNoName) {
  if (!kCountsWarm) GTEST_SKIP() << "a sanitizer stands where the counters do";
  ExpectWarmBatches(GetParam(), {}, kProducts, 0);
}

// Two losses with weights and a mask, grouped and weighted metrics, a history with attention and a recurrent unit, and
// a table that grows with a penalty.
TEST(WarmTasksTest, AllocateNothingTakeNoLockAndLookUpNoName) {
  if (!kCountsWarm) GTEST_SKIP() << "a sanitizer stands where the counters do";
  constexpr int kProductsOfTasks = 40;
  constexpr int kShapesOfTasks = 26;
  ExpectWarmBatches(
      "dataset { class_name: \"InMemoryDataset\" }",
      {"model={ table { name: \"t\" dim: 4 optimizer { adagrad { lr: 0.05 } regularization { l2: 0.01 l1: 0.001 } } } "
       "layer { name: \"item\" embedding { slots: \"C1\" table: \"t\" } } "
       "layer { name: \"slots\" embedding { slots: \"C1..C4\" table: \"t\" } } "
       "layer { name: \"visits\" history { slots: \"C5\" table: \"t\" max_length: 6 position: true } } "
       "layer { name: \"interest\" attention { in: \"visits\" query: \"item\" units: 8 softmax: true } } "
       "layer { name: \"states\" gru { in: \"visits\" units: 4 } } "
       "layer { name: \"last\" pool { in: \"states\" type: LAST } } "
       "layer { name: \"pairs\" cin { in: \"slots\" units: 3 } } "
       "layer { name: \"h\" fc { in: [\"interest\", \"last\", \"pairs\", \"dense\"] units: 8 act: RELU } } "
       "layer { name: \"a\" fc { in: \"h\" units: 1 } } layer { name: \"b\" fc { in: \"h\" units: 1 } } "
       "loss { name: \"a\" kind: SIGMOID_CROSS_ENTROPY in: \"a\" label: \"label\" class_weight: [1, 3] } "
       "loss { name: \"b\" kind: SIGMOID_CROSS_ENTROPY in: \"b\" label: \"label\" mask: \"label\" sample_weight: "
       "\"label\" weight: 0.5 } "
       "optimizer { adagrad { lr: 0.01 } } metric { kind: AUC } metric { kind: LOGLOSS } }"},
      kProductsOfTasks, kShapesOfTasks);
}

INSTANTIATE_TEST_SUITE_P(Datasets, WarmBatchTest,
                         testing::Values("dataset { class_name: \"InMemoryDataset\" }",
                                         "dataset { class_name: \"QueueDataset\" prefetch_batches: 64 }",
                                         "dataset { class_name: \"InMemoryDataset\" } update_mode: ROW_LOCK"));

TEST(WarmCounterTest, SeesAllocationsLocksWakeUpsAndLookUps) {
  if (!kCountsWarm) GTEST_SKIP() << "a sanitizer stands where the counters do";
  Scope scope;
  scope.Var("learning_rate_0");
  const std::string name = "learning_rate_0";
  std::mutex mutex;
  uint32_t number = 0;
  const WarmCounts before = WarmCountsNow();
  EXPECT_NE(scope.Find(name), nullptr);
  const WarmCounts found = WarmCountsNow() - before;
  EXPECT_EQ(found.comparisons, 2);
  EXPECT_EQ(found.allocations, 0);
  { const std::lock_guard lock(mutex); }
  EXPECT_EQ((WarmCountsNow() - before).locks, 1);
  void* volatile memory = std::malloc(10);
  std::free(memory);
  const auto made = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ((WarmCountsNow() - before).allocations, 3);
  EXPECT_EQ((WarmCountsNow() - before).futexes, 0);
  EXPECT_EQ(syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0), 0);
  EXPECT_EQ((WarmCountsNow() - before).futexes, 1);
}

}  // namespace
}  // namespace millrace
