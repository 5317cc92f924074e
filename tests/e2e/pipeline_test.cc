#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

constexpr char kTrainer[] = R"(class_name: "PipelineTrainer" device_worker_name: "SectionWorker" )";

struct PipelineRun {
  std::vector<std::string> model;
  std::string printed;
  std::string checkpoints;
};

/// The fetched lines without their times.
std::string WithoutTimes(const std::string& output) {
  std::string text;
  size_t at = 0;
  while ((at = output.find("batch: [", at)) != std::string::npos) {
    const size_t end = output.find('\n', at);
    text += output.substr(at, end - at) + "\n";
    at = end;
  }
  return text;
}

// The numbers of printed lines, in their order.
std::vector<double> Numbers(const std::string& printed) {
  static const std::regex kNumber(R"(\[([-+.0-9e]+)\])");
  std::vector<double> numbers;
  for (std::sregex_iterator at(printed.begin(), printed.end(), kNumber), end; at != end; ++at) {
    numbers.push_back(std::stod((*at)[1]));
  }
  return numbers;
}

PipelineRun Train(const SmallJob& small, const std::string& name, const std::string& section_param,
                  const std::string& extra = "") {
  const std::string job = small.DeepJob(std::string(kTrainer) + "epochs: 2 update_mode: SERIAL " + extra +
                                        " section_param { " + section_param + " }");
  const std::string out = small.folder() + "/" + name;
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  return {FolderContent(out + "/model"), WithoutTimes(trainer.output()), ""};
}

// 2,500 lines in batches of 32: the last of each pass is short, and so is the last mini-batch.
TEST(Pipeline, TrainsToTheSameBytesHoweverItIsCut) {
  const SmallJob small(2500);
  const std::string kOne = "section_config {} num_microbatches: 4";
  const PipelineRun one = Train(small, "one", kOne);
  ASSERT_GE(one.model.size(), 4u);
  EXPECT_THAT(one.printed, HasSubstr("loss[1]:["));
  const std::map<std::string, std::string> cuts = {
      {"one_1f1b", kOne + " schedule_mode: 1"},
      {"two", R"(section_config { section_out_var_names: "h.0" } section_config {} num_microbatches: 4)"},
      {"two_1f1b",
       R"(section_config { section_out_var_names: "h.0" } section_config {} num_microbatches: 4 schedule_mode: 1)"},
      {"three", R"(section_config { section_out_var_names: "e" } section_config { section_out_var_names: "h" }
                   section_config {} num_microbatches: 4 queue_size: 3)"},
      {"crowded", R"(section_config { section_out_var_names: "e" concurrency: 2 }
                     section_config { concurrency: 3 section_in_var_names: "e" } num_microbatches: 4)"},
      {"crowded_1f1b", R"(section_config { section_out_var_names: "e" concurrency: 2 }
                          section_config { concurrency: 3 } num_microbatches: 4 schedule_mode: 1)"},
  };
  for (const auto& [name, param] : cuts) {
    const PipelineRun cut = Train(small, name, param);
    EXPECT_EQ(cut.printed, one.printed) << name;
    EXPECT_EQ(cut.model, one.model) << name;
  }
}

// A product whose bias is added inside it rounds otherwise than one to which the bias is added, on some processors.
TEST(Pipeline, FusedPrintsTheNumbersOfOneThatIsNot) {
  const SmallJob small(2500);
  const std::string kCut = R"(section_config { section_out_var_names: "h.0" } section_config {} num_microbatches: 4)";
  const std::vector<double> fused = Numbers(Train(small, "fused", kCut).printed);
  const std::vector<double> unfused = Numbers(Train(small, "unfused", kCut, "fuse: false").printed);
  ASSERT_GE(fused.size(), 60u);
  EXPECT_THAT(unfused, testing::Pointwise(testing::DoubleNear(1e-4), fused));
}

// With one micro-batch a mini-batch a pipeline is a plain trainer.
TEST(Pipeline, OfOneMicroBatchTrainsAsMultiTrainerDoes) {
  const SmallJob small(1000);
  const PipelineRun pipeline =
      Train(small, "pipeline", R"(section_config { section_out_var_names: "h.0" } section_config {})");
  const std::string job = small.DeepJob("epochs: 2 update_mode: SERIAL");
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + small.folder() + "/plain"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_EQ(pipeline.printed, WithoutTimes(trainer.output()));
  EXPECT_EQ(pipeline.model, FolderContent(small.folder() + "/plain/model"));
}

TEST(Pipeline, KeepsWhatItTrainedBeforeABadLine) {
  const SmallJob small(1000, 1);
  std::ofstream(small.files()[0], std::ios::app) << "x\n";
  const std::string job = small.DeepJob(std::string(kTrainer) +
                                        "update_mode: SERIAL section_param { section_config {} num_microbatches: 4 }");
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), testing::HasSubstr(":1001:1: slot \"label\""));
  // Mini-batches of four times 32 rows: batches that wait already are trained, the one with the bad line is not.
  EXPECT_THAT(trainer.errors(),
              testing::HasSubstr("what was trained before is kept: --resume=auto goes on from step "));
}

TEST(Pipeline, GoesOnFromItsCheckpointWithTheSameBytes) {
  const SmallJob small(2000);
  const std::string cut = R"(section_config { section_out_var_names: "h.0" } section_config {} num_microbatches: 4)";
  const PipelineRun calm = Train(small, "calm", cut, "checkpoint { every_steps: 8 }");
  const std::string job =
      small.DeepJob(std::string(kTrainer) + "epochs: 2 update_mode: SERIAL checkpoint { every_steps: 8 }" +
                    " section_param { " + cut + " }");
  const std::string out = small.folder() + "/killed";
  const std::vector<std::string> flags = {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto"};
  for (int lines = 3; lines < 16; lines += 6) {
    Process trainer("trainer", flags);
    std::string line;
    for (int i = 0; i < lines && trainer.ReadLine(&line); ++i) {
    }
    trainer.Signal(SIGKILL);
    trainer.Wait();
  }
  Process trainer("trainer", flags);
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_EQ(FolderContent(out + "/model"), calm.model);
}

TEST(Pipeline, SeveralShareTheirParametersAndTrainEveryLineOnce) {
  const SmallJob small(2000);
  const std::string job = small.CountingJob(std::string(kTrainer) +
                                            R"(thread_num: 2 section_param { section_config {} num_microbatches: 1 })");
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(trainer.errors(), HasSubstr("trained: 2000 examples in 2000 batches"));
  EXPECT_THAT(trainer.errors(), HasSubstr("2 workers"));
}

int ThreadsOf(pid_t pid) {
  int threads = 0;
  std::error_code error;
  for ([[maybe_unused]] const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error)) {
    ++threads;
  }
  return threads;
}

// The command hands on what it has, then hangs: the pipeline waits for a mini-batch.
class HangingPipeline {
 public:
  HangingPipeline(const SmallJob& small, const std::string& sections)
      : job_(small.DeepJob(std::string(kTrainer) + "section_param { num_microbatches: 4 " + sections + " }")),
        trainer_("trainer", {"--trainer_desc=" + job_, "--output_dir=" + small.folder() + "/out",
                             "--set=data_desc.pipe_command=\"for i in {1..200}; do cat " + small.files()[0] +
                                 "; done; sleep 1000\""}) {}
  Process& trainer() { return trainer_; }

 private:
  std::string job_;
  Process trainer_;
};

TEST(Pipeline, HasAThreadForEachOfASectionsConcurrency) {
  const SmallJob small(1000, 1);
  std::string line;
  int few = 0;
  int many = 0;
  {
    HangingPipeline run(small, "section_config {}");
    ASSERT_TRUE(run.trainer().ReadLine(&line)) << run.trainer().errors();
    few = ThreadsOf(run.trainer().pid());
  }
  {
    HangingPipeline run(small, R"(section_config { section_out_var_names: "e" concurrency: 2 }
                                  section_config { concurrency: 3 })");
    ASSERT_TRUE(run.trainer().ReadLine(&line)) << run.trainer().errors();
    many = ThreadsOf(run.trainer().pid());
  }
  EXPECT_EQ(many - few, 4);
}

TEST(Pipeline, InterruptedLeavesACheckpoint) {
  const SmallJob small(1000, 1);
  HangingPipeline run(small, R"(section_config { section_out_var_names: "e" concurrency: 2 } section_config {})");
  std::string line;
  ASSERT_TRUE(run.trainer().ReadLine(&line)) << run.trainer().errors();
  const auto start = std::chrono::steady_clock::now();
  run.trainer().Signal(SIGINT);
  EXPECT_EQ(run.trainer().Wait(), 130) << run.trainer().errors();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_FALSE(std::filesystem::is_empty(small.folder() + "/out/checkpoints"));
}

TEST(Pipeline, AFailureInASectionEndsAll) {
  const SmallJob small(1000, 1);
  std::ofstream(small.files()[0], std::ios::app) << "1 nan 1 1 1 5 1 7 2 9 9\n";
  const std::string job = small.DeepJob(std::string(kTrainer) + R"(check_nan_var_names: "loss" section_param {
      num_microbatches: 4 section_config { section_out_var_names: "e" concurrency: 2 } section_config {} })");
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + small.folder() + "/out",
                              "--set=model.loss.kind=SQUARED_ERROR"});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("section 0: variable \"loss\" holds a NaN"));
}

TEST(Pipeline, NamesTheNearestVariableOfACut) {
  const SmallJob small(100, 1);
  const std::string job = small.DeepJob(
      std::string(kTrainer) + R"(section_param { section_config { section_out_var_names: "hh" } section_config {} })");
  Process trainer("trainer", {"--trainer_desc=" + job});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(),
              HasSubstr("section_config[0]: section_out_var_names: no operator of the forward part computes \"hh\""));
}

}  // namespace
}  // namespace millrace
