// What a run has to show for itself, over stops, resumes and whatever happens to its outputs: bad lines, uploads,
// numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "paths.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void WaitFor(const std::string& file) {
  while (!std::filesystem::exists(file)) std::this_thread::yield();
}

/// A log whose every tenth line is bad, 100 of 1000, and a run over it with a checkpoint every ten batches.
class BadLinesOfRuns : public testing::Test {
 protected:
  void SetUp() override {
    const std::string file = small_.files()[0];
    std::istringstream whole(ReadFile(file).value());
    std::ofstream out(file);
    int number = 0;
    for (std::string line; std::getline(whole, line);) out << (++number % 10 == 0 ? "x" : line) << "\n";
  }
  int Run(const std::string& resume, const std::string& policy) {
    Process trainer("trainer", {"--trainer_desc=" + job_, "--output_dir=" + out_, "--resume=" + resume,
                                "--set=data_desc.bad_lines={ " + policy + " }"});
    const int code = trainer.Wait();
    errors_ = trainer.errors();
    return code;
  }
  std::string Step(int step) const { return out_ + "/checkpoints/step-0000000000" + std::to_string(step); }

  const SmallJob small_{1000, 1};
  const std::string job_ =
      small_.DeepJob("update_mode: SERIAL checkpoint { every_steps: 10 keep: 100 } output { tensorboard: false }");
  const std::string out_ = small_.folder() + "/out";
  std::string errors_;
};

TEST_F(BadLinesOfRuns, CountToTheBudgetOverResumes) {
  ASSERT_EQ(Run("never", "action: SKIP max_fraction: 1"), 0) << errors_;
  EXPECT_THAT(ReadFile(out_ + "/run.json").value(), HasSubstr("\"bad_lines\": 100,"));
  ASSERT_EQ(Run(Step(20), "action: SKIP max_fraction: 1"), 0) << errors_;
  EXPECT_THAT(ReadFile(out_ + "/run.json").value(), HasSubstr("\"bad_lines\": 100,"));
  EXPECT_THAT(errors_, HasSubstr("bad lines   100 of 1000 left out"));
  // 71 of them stand before the checkpoint, 29 behind it.
  EXPECT_EQ(Run(Step(20), "action: SKIP max_fraction: 1 max_lines: 90"), 3);
  EXPECT_THAT(errors_, HasSubstr("too many bad lines: 91 among the first 910 lines"));
  EXPECT_EQ(Run(Step(20), "action: SKIP max_fraction: 0.09 max_lines: 1000"), 3);
  EXPECT_THAT(errors_, HasSubstr("max_fraction: 0.09"));
}

TEST_F(BadLinesOfRuns, AreKeptByARunWithNothingLeftToDo) {
  ASSERT_EQ(Run("never", "action: QUARANTINE max_fraction: 1"), 0) << errors_;
  const std::string once = ReadFile(out_ + "/run.json").value();
  const auto data = [](const std::string& json) {
    const size_t begin = json.find("\"data\"");
    return json.substr(begin, json.find("\"stage_seconds\"") - begin);
  };
  EXPECT_THAT(data(once), AllOf(HasSubstr("\"files\": 1,"), HasSubstr("\"bad_lines\": 100,")));
  const size_t block = errors_.find("  bad lines   100 of 1000 left out");
  ASSERT_NE(block, std::string::npos) << errors_;
  const std::string shown = errors_.substr(block, errors_.find("  bottleneck") - block);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Run("auto", "action: QUARANTINE max_fraction: 1"), 0) << errors_;
    EXPECT_EQ(data(ReadFile(out_ + "/run.json").value()), data(once));
    EXPECT_THAT(errors_, HasSubstr(shown));
  }
}

TEST_F(BadLinesOfRuns, StandOnceInTheQuarantineWhateverWasKilled) {
  ASSERT_EQ(Run("never", "action: QUARANTINE max_fraction: 1"), 0) << errors_;
  const std::string once = ReadFile(out_ + "/bad_lines.txt").value();
  EXPECT_EQ(std::count(once.begin(), once.end(), '\n'), 100);
  // The run that goes on meets those behind its checkpoint again; the last one was cut by the kill.
  std::filesystem::resize_file(out_ + "/bad_lines.txt", once.size() - 7);
  ASSERT_EQ(Run(Step(10), "action: QUARANTINE max_fraction: 1"), 0) << errors_;
  EXPECT_EQ(ReadFile(out_ + "/bad_lines.txt").value(), once);
}

class Upload : public testing::TestWithParam<int> {
 protected:
  std::string Job(const std::string& command) const {
    std::string passes;
    for (int day = 0; day < 3; ++day) {
      passes += " pass { name: \"d" + std::to_string(day) + "\" filelist: \"" +
                small_.files()[static_cast<size_t>(day)] + "\" }";
    }
    return small_.DeepJob("update_mode: SERIAL output { tensorboard: false }\nincremental {" + passes +
                          " save_command: \"" + command + "\" }\n");
  }
  std::vector<std::string> Flags(const std::string& job) const {
    return {"--trainer_desc=" + job, "--output_dir=" + small_.folder() + "/out", "--resume=auto"};
  }
  std::string In(const std::string& name) const { return small_.folder() + "/" + name; }

  const SmallJob small_{900};
};

TEST_P(Upload, ThatAStopCutShortIsRunAgain) {
  for (const std::string& day : {std::string("d1"), std::string("d2")}) {
    for (const char* file : {"out", "log", "started", "go"}) std::filesystem::remove_all(In(file));
    const std::string job = Job("if test $2 = " + day + "; then touch " + In("started") + "; until test -e " +
                                In("go") + "; do sleep 0.02; done; fi; echo $2 >> " + In("log"));
    Process stopped("trainer", Flags(job));
    WaitFor(In("started"));
    stopped.Signal(GetParam());
    EXPECT_EQ(stopped.Wait(), 130) << stopped.errors();
    EXPECT_THAT(stopped.errors(), HasSubstr("save_command of pass \"" + day + "\" was stopped"));
    EXPECT_EQ(ReadFile(In("log")).value(), day == "d1" ? "d0\n" : "d0\nd1\n");
    std::ofstream(In("go")) << "go";
    Process resumed("trainer", Flags(job));
    EXPECT_EQ(resumed.Wait(), 0) << resumed.errors();
    EXPECT_EQ(ReadFile(In("log")).value(), "d0\nd1\nd2\n");
    EXPECT_THAT(ReadFile(In("out/run.json")).value(), HasSubstr("\"examples\": 900,"));
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, Upload, testing::Values(SIGINT, SIGTERM));

using FailedUpload = Upload;

TEST_P(FailedUpload, IsKeptOverResumesAndRunAgain) {
  const std::string job =
      Job("if test $2 = d1 && ! test -e " + In("ok") + "; then exit 7; fi; echo $2 >> " + In("log"));
  Process failed("trainer", Flags(job));
  EXPECT_EQ(failed.Wait(), 3);
  Process still("trainer", Flags(job));
  EXPECT_EQ(still.Wait(), 3) << still.errors();
  EXPECT_THAT(ReadFile(In("out/run.json")).value(), HasSubstr("save_command of pass \\\"d1\\\""));
  std::ofstream(In("ok")) << "ok";
  Process mended("trainer", Flags(job));
  EXPECT_EQ(mended.Wait(), 0) << mended.errors();
  EXPECT_THAT(mended.errors(), HasSubstr("save_command of pass \"d1\", which failed before: running it again"));
  EXPECT_EQ(ReadFile(In("log")).value(), "d0\nd2\nd1\n");
  EXPECT_THAT(ReadFile(In("out/run.json")).value(), Not(HasSubstr("save_failures")));
  Process again("trainer", Flags(job));
  EXPECT_EQ(again.Wait(), 0) << again.errors();
  EXPECT_EQ(ReadFile(In("log")).value(), "d0\nd2\nd1\n") << "what went well is not done again";
}

INSTANTIATE_TEST_SUITE_P(Recovery, FailedUpload, testing::Values(0));

class RemovedWhileRunning : public testing::TestWithParam<const char*> {};

TEST_P(RemovedWhileRunning, IsAFailureThatIsToldAtOnce) {
  const SmallJob small(1000, 1);
  const std::string out = small.folder() + "/out";
  const std::string go = small.folder() + "/go";
  const std::string file = small.files()[0];
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob("update_mode: SERIAL output { tensorboard: false }"),
                              "--output_dir=" + out, "--set=checkpoint={ every_epochs: 0 }",
                              "--set=data_desc.pipe_command=cat " + file + "; until test -e " + go +
                                  "; do sleep 0.02; done; cat " + file});
  std::string line;
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  // The run may write into the folder at this moment.
  std::error_code busy;
  while (std::filesystem::exists(out + GetParam())) std::filesystem::remove_all(out + GetParam(), busy);
  std::ofstream(go) << "go";
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(),
              HasSubstr("warning: \"" + out + "/metrics.jsonl\" was removed, replaced or cut short while"));
  EXPECT_THAT(trainer.errors(), HasSubstr("trained: 2000 examples"));
}

TEST(EventsAndPoints, ThatAreTakenAwayWhileRunningAreAFailureThatIsTold) {
  const SmallJob small(1000, 1);
  const std::string out = small.folder() + "/out";
  const std::string go = small.folder() + "/go";
  const std::string file = small.files()[0];
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob("update_mode: SERIAL"), "--output_dir=" + out,
                              "--set=data_desc.pipe_command=cat " + file + "; until test -e " + go +
                                  "; do sleep 0.02; done; cat " + file});
  std::string line;
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();  // the first point is written
  std::filesystem::resize_file(out + "/metrics.jsonl", 0);
  std::error_code busy;
  while (std::filesystem::exists(out + "/tensorboard")) std::filesystem::remove_all(out + "/tensorboard", busy);
  std::ofstream(go) << "go";
  EXPECT_EQ(trainer.Wait(), 3);
  const std::string told = "\" was removed, replaced or cut short while the run writes to it; the run goes on\n";
  EXPECT_THAT(trainer.errors(), HasSubstr("warning: \"" + out + "/metrics.jsonl" + told));
  EXPECT_THAT(trainer.errors(), HasSubstr("warning: \"" + out + "/tensorboard/events.out.tfevents."));
  EXPECT_THAT(trainer.errors(), HasSubstr("trained: 2000 examples"));
  EXPECT_FALSE(std::filesystem::is_empty(out + "/tensorboard")) << "what comes afterwards is kept";
  EXPECT_THAT(ReadFile(out + "/metrics.jsonl").value(), HasSubstr("{\"step\":"));
}

INSTANTIATE_TEST_SUITE_P(Output, RemovedWhileRunning, testing::Values("", "/metrics.jsonl"));

TEST(Trainer, WhoseStandardOutputIsFullSaysSoAndOneWithoutAReaderGoesOn) {
  const SmallJob small(300, 1);
  const std::string command = BinDir() + "/trainer --trainer_desc=" + small.DeepJob("") +
                              " --output_dir=" + small.folder() + "/out 2> " + small.folder() + "/errors";
  EXPECT_EQ(WEXITSTATUS(std::system((command + " > /dev/full").c_str())), 3);
  const std::string errors = ReadFile(small.folder() + "/errors").value();
  EXPECT_THAT(errors, HasSubstr("cannot write what is fetched to standard output: No space left on device"));
  EXPECT_THAT(errors, HasSubstr("trained: 300 examples"));
  const std::string piped = "bash -c '" + command + " | true; exit ${PIPESTATUS[0]}'";
  EXPECT_EQ(WEXITSTATUS(std::system(piped.c_str())), 0) << ReadFile(small.folder() + "/errors").value();
}

/// A run whose best evaluation was its first: no later one is better by so much.
class BestAndLast : public testing::Test {
 protected:
  void SetUp() override {
    Process trainer("trainer", {"--trainer_desc=" + job_, "--output_dir=" + out_});
    ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  }
  int Infer(const std::string& model) {
    std::vector<std::string> flags = {"--trainer_desc=" + job_, "--output_dir=" + out_, "--resume=auto",
                                      "--set=infer=true"};
    if (!model.empty()) flags.push_back("--model=" + model);
    Process trainer("trainer", flags);
    const int code = trainer.Wait();
    errors_ = trainer.errors();
    return code;
  }
  /// "auc 0.812345  logloss 0.512345" of the closing block.
  std::string Metrics() const {
    const size_t at = errors_.find("auc ", errors_.find("  metrics "));
    return errors_.substr(at, errors_.find("  calibration", at) - at);
  }

  const SmallJob small_{1000, 1};
  const std::string job_ =
      small_.DeepJob("update_mode: SERIAL epochs: 3 output { tensorboard: false } eval { filelist: \"" +
                     small_.files()[0] + "\" early_stopping { min_delta: 10 patience: 5 } }");
  const std::string out_ = small_.folder() + "/out";
  std::string errors_;
};

TEST_F(BestAndLast, AreToldApartAndChosenByAnInference) {
  ASSERT_EQ(Infer(""), 0) << errors_;
  EXPECT_THAT(errors_, HasSubstr("after epoch 3, step 96"));
  EXPECT_THAT(errors_, HasSubstr("the last parameters are taken; those of the best evaluation, \"step-000000000032\""));
  const std::string last = Metrics();
  ASSERT_EQ(Infer("last"), 0);
  EXPECT_EQ(Metrics(), last);
  ASSERT_EQ(Infer("best"), 0) << errors_;
  EXPECT_THAT(errors_, HasSubstr("after epoch 1, step 32"));
  const std::string best = Metrics();
  EXPECT_NE(best, last);
  // model/ is the best one, and the lines have the label.
  Process predictor("predictor", {"--model_dir=" + out_ + "/model", "--input=" + small_.files()[0]});
  ASSERT_EQ(predictor.Wait(), 0) << predictor.errors();
  EXPECT_THAT(predictor.errors(), HasSubstr(best + "  calibration "));
  EXPECT_THAT(predictor.errors(), HasSubstr(" of 1000 examples\n"));
  EXPECT_EQ(Infer("newest"), 2);
  EXPECT_THAT(errors_, HasSubstr("--model is best or last, not \"newest\""));
}

TEST(EarlyStopping, CountsEvaluationsWithoutAValueOverResumes) {
  const SmallJob small(100, 1);
  const std::string out = small.folder() + "/out";
  const std::string eval = small.folder() + "/clicks";
  std::ofstream(eval) << "1 1 1 1 1 1 1 1 2 1 2\n";  // of one class: there is no AUC
  const std::string job = small.DeepJob("eval { filelist: \"" + eval + "\" early_stopping { patience: 3 } }");
  for (const int epochs : {1, 2, 10}) {
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto",
                                "--set=epochs=" + std::to_string(epochs)});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  }
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"examples\": 300,"));
}

TEST(ScoresThatAreNan, MakeNanOfTheSameMetrics) {
  const SmallJob small(200, 1);
  const std::string job = small.DeepJob("");
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + small.folder() + "/out",
                              "--set=model.optimizer.adam.lr=1e38", "--set=allow_non_finite=true"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  Process predictor("predictor", {"--model_dir=" + small.folder() + "/out/model", "--input=" + small.files()[0]});
  EXPECT_EQ(predictor.Wait(), 3);
  EXPECT_THAT(predictor.errors(), HasSubstr("auc nan  logloss nan  calibration nan  of 200 examples\n"));
}

TEST_F(BestAndLast, ATrainingGoesOnFromTheLast) {
  Process trainer("trainer", {"--trainer_desc=" + job_, "--output_dir=" + out_, "--resume=auto", "--model=best"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("--model=best names the parameters of an inference"));
}

TEST_F(BestAndLast, AClosedStreamOfThePredictorIsAFailure) {
  const std::string predictor =
      BinDir() + "/predictor --model_dir=" + out_ + "/model 2> " + small_.folder() + "/errors";
  const auto run = [&](const std::string& rest) {
    const int status = std::system((predictor + " " + rest).c_str());
    errors_ = ReadFile(small_.folder() + "/errors").value();
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(run("<&-"), 3);
  EXPECT_THAT(errors_, HasSubstr("no lines to score: standard input is closed"));
  EXPECT_EQ(run("--input=" + small_.files()[0] + " >&-"), 3);
  EXPECT_THAT(errors_, HasSubstr("cannot write scores: standard output is closed"));
  EXPECT_EQ(run("--input=" + small_.files()[0] + " --output=" + small_.folder() + "/scores >&- <&-"), 0) << errors_;
}

TEST_F(BestAndLast, ScoresThatAreNotUnderTheirNameAtTheEndAreAFailure) {
  const auto run = [&](const std::string& output, const std::string& command) {
    Process predictor("predictor", {"--model_dir=" + out_ + "/model", "--input=" + small_.files()[0],
                                    "--output=" + output, "--pipe_command=" + command});
    const int code = predictor.Wait();
    errors_ = predictor.errors();
    return code;
  };
  const std::string folder = small_.folder() + "/scored";
  for (const char* again : {"true", "mkdir $D && touch $D/scores"}) {
    std::filesystem::create_directories(folder);
    const std::string command = "D=" + folder + "; rm -r $D && " + again + " && cat";
    EXPECT_EQ(run(folder + "/scores", command), 3);
    EXPECT_THAT(errors_, HasSubstr("\"" + folder + "/scores\" was removed or replaced while scores were written"));
  }
  EXPECT_EQ(run(folder + "/scores", "cat"), 0) << errors_;
  const std::string scores = ReadFile(folder + "/scores").value();
  for (const char* const none : {"echo no line", "true", "exit 5"}) {
    EXPECT_EQ(run(folder + "/scores", none), 3) << errors_;
    EXPECT_EQ(ReadFile(folder + "/scores").value(), scores) << "an input without a score leaves the file as it was";
  }
  EXPECT_EQ(run(folder + "/scores", "head -n 2"), 0) << errors_;
  EXPECT_LT(ReadFile(folder + "/scores").value().size(), scores.size());
  EXPECT_EQ(run("/dev/null", "cat"), 0) << errors_;
  EXPECT_EQ(run("/dev/full", "cat"), 3);
  EXPECT_THAT(errors_, HasSubstr("cannot write scores to \"/dev/full\": No space left on device"));
}

}  // namespace
}  // namespace millrace
