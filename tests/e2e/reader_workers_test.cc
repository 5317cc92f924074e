#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/file.h"
#include "core/rng.h"
#include "core/sealed_text.h"
#include "device_worker/device_worker.h"
#include "e2e/process.h"
#include "e2e/reader_job.h"
#include "paths.h"
#include "process_tree.h"
#include "runtime/lod_tensor_codec.h"

namespace millrace {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;

constexpr int kIds = 3000;
constexpr int kInFirstFile = 1700;

/// A program that feeds itself with ids, each of which is in one file once, and counts for each how often it was
/// trained.
class CountingReaders {
 public:
  CountingReaders() : folder_(TempDir::Create("counting_readers").value()) {
    std::ofstream files[] = {std::ofstream(file(0)), std::ofstream(file(1))};
    for (int id = 0; id < kIds; ++id) files[id < kInFirstFile ? 0 : 1] << id << '\n';
    for (const std::string part : {"main", "startup"}) {
      const std::string text = ReadFile(SourceDir() + "/tests/jobs/counting_readers_" + part + ".pbtxt").value();
      std::ofstream(folder() + "/" + part + ".pbtxt") << Replaced(text, "FOLDER", folder());
    }
  }

  const std::string& folder() const { return folder_.path(); }
  std::string file(int number) const { return folder() + "/ids-" + std::to_string(number) + ".csv"; }

  std::string Job(const std::string& extra) const {
    const std::string path = folder() + "/job.prototxt";
    std::ofstream(path) << "program { main: \"" << folder() << "/main.pbtxt\" startup: \"" << folder()
                        << "/startup.pbtxt\" save_dir: \"" << folder() << "/saved\" }\n"
                        << "fetch_config { fetch_var_names: \"id\" print_period: 4 }\n"
                        << extra << '\n';
    return path;
  }
  std::vector<std::string> Flags(const std::string& job) const {
    return {"--trainer_desc=" + job, "--output_dir=" + folder() + "/out", "--resume=auto"};
  }

  /// How often each id was trained by the run that ended.
  std::vector<float> Counts() const {
    const std::string path = folder() + "/saved/counts";
    const std::string bytes = ReadFile(path).value();
    Tensor counts;
    EXPECT_TRUE(ReadLoDTensor(bytes, path, &counts).ok());
    std::vector<float> times;
    for (int64_t id = 0; id < counts.numel(); ++id) times.push_back(-counts.data<float>()[id]);
    return times;
  }

 private:
  TempDir folder_;
};

TEST(ReaderWorkers, TrainEachExampleOnceAnEpoch) {
  for (const std::string workers : {"1", "2", "5"}) {
    const CountingReaders readers;
    Process trainer("trainer", readers.Flags(readers.Job("epochs: 3 thread_num: " + workers)));
    ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
    EXPECT_THAT(readers.Counts(), Each(3.F)) << workers;
    const std::string run = ReadFile(readers.folder() + "/out/run.json").value();
    EXPECT_THAT(run, HasSubstr("\"examples\": 9000"));
    EXPECT_THAT(run, HasSubstr("\"batches\": 1125"));
    EXPECT_THAT(run, HasSubstr("\"epochs\": 3"));
    EXPECT_THAT(run, HasSubstr("\"workers\": " + workers));
  }
}

TEST(ReaderWorkers, KilledAndStoppedTrainEachExampleOnceAnEpoch) {
  const CountingReaders readers;
  const std::string job = readers.Job("epochs: 3 thread_num: 2 checkpoint { every_steps: 7 }");
  Rng rng(5);
  for (int end = 0; end < 6; ++end) {
    Process trainer("trainer", readers.Flags(job));
    std::string line;
    const uint64_t lines = 4 + rng.Below(20);
    for (uint64_t i = 0; i < lines && trainer.ReadLine(&line); ++i) {
    }
    // Every other one is asked to end, and leaves a checkpoint where its workers stand.
    trainer.Signal(end % 2 == 0 ? SIGKILL : SIGINT);
    trainer.Wait();
  }
  Process last("trainer", readers.Flags(job));
  ASSERT_EQ(last.Wait(), 0) << last.errors();
  EXPECT_THAT(last.errors(), HasSubstr("going on from"));
  EXPECT_THAT(readers.Counts(), Each(3.F));
}

TEST(ReaderWorkers, AFinishedRunGoesOnWithMoreEpochs) {
  const CountingReaders readers;
  for (const std::string epochs : {"1", "3"}) {
    Process trainer("trainer",
                    readers.Flags(readers.Job("thread_num: 2 checkpoint { every_epochs: 1 } epochs: " + epochs)));
    ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  }
  EXPECT_THAT(readers.Counts(), Each(3.F));
}

TEST(ReaderWorkers, AFinishedRunOfAnEarlierVersionWhoseReadersStandAtTheirEndGoesOnWithMoreEpochs) {
  const CountingReaders readers;
  const std::string finished = readers.Job("thread_num: 2 checkpoint { every_epochs: 1 }");
  Process first("trainer", readers.Flags(finished));
  ASSERT_EQ(first.Wait(), 0) << first.errors();
  const std::string manifest = readers.folder() + "/out/checkpoints/step-000000000375/MANIFEST";
  const std::string text = ReadSealedText(manifest).value();
  const std::string earlier = Replaced(text, "resets: 1\n  items: 0\n", "resets: 0\n  items: 375\n");
  ASSERT_NE(earlier, text);
  std::ofstream(manifest) << SealText(earlier);
  Process more("trainer", readers.Flags(readers.Job("thread_num: 2 checkpoint { every_epochs: 1 } epochs: 3")));
  ASSERT_EQ(more.Wait(), 0) << more.errors();
  EXPECT_THAT(more.errors(), HasSubstr("step 375, 3000 examples"));
  EXPECT_THAT(readers.Counts(), Each(3.F));
}

TEST(ReaderWorkers, ManyTimesAsManyAsProcessorsAreWarnedOf) {
  const int64_t workers = 16 * static_cast<int64_t>(UsableProcessors().size()) + 1;
  if (workers > 4096) GTEST_SKIP() << "more workers than a job may have";
  const CountingReaders readers;
  Process trainer("trainer", readers.Flags(readers.Job("thread_num: " + std::to_string(workers))));
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(trainer.errors(), HasSubstr("warning: thread_num: " + std::to_string(workers) + " workers share"));
  EXPECT_THAT(readers.Counts(), Each(1.F));
}

/// Whether a process reads a file now.
bool HasOpen(pid_t pid, const std::string& file) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code closed;
    if (std::filesystem::read_symlink(entry.path(), closed) == file) return true;
  }
  return false;
}

TEST(ReaderWorkers, StoppedWhileAPipeIsSilentGoOnWhereTheyStood) {
  const CountingReaders readers;
  const std::string job = readers.Job("epochs: 2 thread_num: 2 checkpoint { every_steps: 100000 }");
  std::filesystem::rename(readers.file(1), readers.file(1) + ".whole");
  ASSERT_EQ(mkfifo(readers.file(1).c_str(), 0600), 0);
  const int writer = open(readers.file(1).c_str(), O_RDWR | O_CLOEXEC);
  {
    Process trainer("trainer", readers.Flags(job));
    // The first worker, which prints, may have trained as few batches as it likes: lines do not tell how far the run
    // is.
    while (!HasOpen(trainer.pid(), readers.file(1))) std::this_thread::yield();
    WaitUntilIdle(trainer.pid());
    trainer.Signal(SIGINT);
    EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
    EXPECT_THAT(trainer.errors(), Not(HasSubstr("only the checkpoints of before")));
  }
  close(writer);
  std::filesystem::rename(readers.file(1) + ".whole", readers.file(1));
  Process resumed("trainer", readers.Flags(job));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr("going on from"));
  EXPECT_THAT(readers.Counts(), Each(2.F));
}

TEST(ReaderWorkers, AFailureInOneEndsTheRunWithFileAndLineAndKeepsWhatWasTrained) {
  const CountingReaders readers;
  const std::string whole = ReadFile(readers.file(1)).value();
  std::ofstream(readers.file(1)) << Replaced(whole, "2500\n", "what\n");
  const std::string job = readers.Job("thread_num: 2 checkpoint { every_steps: 100000 }");
  Process trainer("trainer", readers.Flags(job));
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("reader \"batches\""));
  EXPECT_THAT(trainer.errors(), HasSubstr(readers.file(1) + ":" + std::to_string(2500 - kInFirstFile + 1)));
  EXPECT_THAT(trainer.errors(), HasSubstr("what was trained before is kept"));
  std::ofstream(readers.file(1)) << whole;
  Process resumed("trainer", readers.Flags(job));
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(readers.Counts(), Each(1.F));
}

TEST(ReaderWorkers, WhoseFilesWereReadByTwoThreadsWentOnWithOtherRowsInSilence) {
  for (const std::string threads : {"1", "2"}) {
    const CountingReaders readers;
    const std::string startup = ReadFile(readers.folder() + "/startup.pbtxt").value();
    std::ofstream(readers.folder() + "/startup.pbtxt")
        << Replaced(startup, "attrs { name: \"ranks\"",
                    "attrs { name: \"thread_num\" type: INT i: " + threads + " } attrs { name: \"ranks\"");
    const std::string whole = ReadFile(readers.file(1)).value();
    std::ofstream(readers.file(1)) << Replaced(whole, "2500\n", "what\n");
    const std::string job = readers.Job("thread_num: 2 checkpoint { every_steps: 100000 }");
    Process trainer("trainer", readers.Flags(job));
    EXPECT_EQ(trainer.Wait(), 3);
    std::ofstream(readers.file(1)) << whole;
    Process resumed("trainer", readers.Flags(job));
    ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
    const bool is_warned =
        resumed.errors().find("warning: open_files of reader \"files\" has thread_num 2") != std::string::npos;
    EXPECT_EQ(is_warned, threads == "2") << resumed.errors();
  }
}

TEST(ReaderWorkers, AnOperatorThatFailsInOneEndsTheRunBehindItsLastCheckpoint) {
  const CountingReaders readers;
  std::ofstream(readers.file(1), std::ios::app) << kIds << '\n';  // one more than there are counts
  Process trainer("trainer", readers.Flags(readers.Job("thread_num: 2 checkpoint { every_steps: 50 }")));
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("lookup_table"));
  // Which one is last depends on what the other worker trains meanwhile.
  EXPECT_THAT(trainer.errors(), testing::ContainsRegex("the checkpoint of step [0-9]+ is from before that"));
}

TEST(ReaderWorkers, FilesWithoutARowAreNoTraining) {
  const CountingReaders readers;
  for (const int number : {0, 1}) std::ofstream(readers.file(number)) << "";
  Process trainer("trainer", readers.Flags(readers.Job("thread_num: 2 epochs: 2")));
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("nothing to train on: reader \"batches\" delivered no item"));
}

TEST(ReaderWorkers, AreNotThoseOfAPluginThatTakesBatches) {
  const CountingReaders readers;
  Process trainer("trainer", readers.Flags(readers.Job("device_worker_name: \"SectionWorker\"")));
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("and there is no dataset that device_worker_name could use"));
}

}  // namespace
}  // namespace millrace
