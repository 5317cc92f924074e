// What programs write: scores of either feed, and what happens when nobody reads any more.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/delayed_stop.h"
#include "e2e/killed_job.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "trainer/in_process.h"
#include "trainer/job_run.h"
#include "trainer/validate_job.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string Number(float value) {
  char digits[48];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

/// Writes the pooled embeddings of every training line as lines of the online feed.
void WriteOnlineLines(JobSession& job, const std::string& path) {
  std::ofstream out(path);
  Dataset& dataset = job.dataset();
  const auto frame =
      Frame::Create(**job.job().eval(), &dataset.schema(), job.root(), job.frame_options(0, true)).value();
  ASSERT_TRUE(dataset.BeginPass({.workers = 1, .ordered = true}).ok());
  while (true) {
    const BatchPtr batch = dataset.source(0).Next({}).value();
    if (batch == nullptr) break;
    RunContext context;
    context.batch = batch.get();
    context.rows = batch->rows();
    ASSERT_TRUE(frame->Run(context).ok());
    const Tensor& pooled = frame->Find("e")->Get<Tensor>();
    const int64_t width = pooled.numel() / batch->rows();
    for (int64_t row = 0; row < batch->rows(); ++row) {
      out << width;
      for (int64_t i = 0; i < width; ++i) out << ' ' << Number(pooled.data<float>()[row * width + i]);
      out << '\n';
    }
  }
  ASSERT_TRUE(dataset.EndPass().ok());
}

TEST(VerboseLog, TellsReadersChannelsWorkersAndOperators) {
  const SmallJob small(60);
  const std::string memory = "thread_num: 2 dataset { class_name: \"InMemoryDataset\" queue_num: 3 }";
  Process loads("trainer", {"--v=3", "--trainer_desc=" + small.DeepJob(memory)});
  ASSERT_EQ(loads.Wait(), 0) << loads.errors();
  EXPECT_THAT(loads.errors(),
              AllOf(HasSubstr("InMemoryDataset: files num: 3"), HasSubstr("rows of the input channel: 60"),
                    HasSubstr("rows of the pass: 60"), HasSubstr("output channels: 3"),
                    HasSubstr("output and consume channels swapped"), HasSubstr("worker thread num: 2"),
                    HasSubstr("device worker: HogwildWorker"), HasSubstr("op[0]->Type(): ")));
  EXPECT_THAT(loads.errors(), ContainsRegex("\nmulti_trainer.cc:[0-9]+: op\\[0\\]->Type\\(\\): "));
  Process streams("trainer", {"--v=3", "--trainer_desc=" + small.DeepJob(""), "--set=data_desc.thread_num=2"});
  ASSERT_EQ(streams.Wait(), 0) << streams.errors();
  EXPECT_THAT(streams.errors(),
              AllOf(HasSubstr("QueueDataset: files num: 3"), HasSubstr("readers num: 2"),
                    HasSubstr("CreateReaders: thread num: 2, data feed class name: MultiSlotDataFeed"),
                    Not(HasSubstr("warning: readers"))));
  Process silent("trainer", {"--trainer_desc=" + small.DeepJob("")});
  ASSERT_EQ(silent.Wait(), 0) << silent.errors();
  EXPECT_THAT(silent.errors(), Not(HasSubstr("readers num")));
}

TEST(OnlineFeedTest, PooledEmbeddingsScoreAsTheIdsTheyCameFrom) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  const std::unique_ptr<JobSession> job = MakeJob(small.DeepJob("update_mode: SERIAL"), out);
  ASSERT_TRUE(RunJob(*job, "never", "last", {}).ok());
  const std::string online_lines = small.folder() + "/online";
  WriteOnlineLines(*job, online_lines);

  const std::string scores = small.folder() + "/scores";
  Process offline("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0], "--output=" + scores});
  ASSERT_EQ(offline.Wait(), 0) << offline.errors();
  Process online("predictor", {"--model_dir=" + out + "/model", "--feed=online", "--input=" + online_lines,
                               "--compare=" + scores, "--tolerance=1e-6"});
  EXPECT_EQ(online.Wait(), 0) << online.errors();
  EXPECT_THAT(online.errors(), HasSubstr("300 scores agree"));
  EXPECT_EQ(online.output(), "") << "scores that nobody asked for";

  const std::string fifo = small.folder() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::jthread writer([&] { std::ofstream(fifo) << ReadFile(scores).value(); });
  Process piped("predictor", {"--model_dir=" + out + "/model", "--feed=online", "--input=" + online_lines,
                              "--compare=" + fifo, "--tolerance=1e-6"});
  EXPECT_EQ(piped.Wait(), 0) << piped.errors();

  const std::string input = ReadFile(small.files()[0]).value();
  Process over("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0],
                             "--output=" + small.folder() + "/./part-0"});
  EXPECT_EQ(over.Wait(), 2);
  EXPECT_THAT(over.errors(), HasSubstr("--output and --input are the same file"));
  EXPECT_EQ(ReadFile(small.files()[0]).value(), input) << "the input was written over";

  const std::string program = out + "/model/program_offline";
  const std::string model = ReadFile(program).value();
  Process lost("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0], "--output=" + program});
  EXPECT_EQ(lost.Wait(), 2);
  EXPECT_THAT(lost.errors(), HasSubstr("a file of the model, which would be lost"));
  EXPECT_EQ(ReadFile(program).value(), model);

  Process neither("predictor", {"--model_dir=" + out + "/model", "--feed=onlin", "--input=" + online_lines});
  EXPECT_EQ(neither.Wait(), 2);
  EXPECT_THAT(neither.errors(), HasSubstr("has no feed \"onlin\"; it has: offline, online"));
  Process ids("predictor", {"--model_dir=" + out + "/model", "--feed=online", "--input=" + small.files()[0]});
  EXPECT_EQ(ids.Wait(), 3) << "lines of the other feed were scored";
  EXPECT_THAT(ids.errors(), HasSubstr("slot \"e\""));
}

TEST(PredictorTest, ARowThatBreaksAHistoryIsToldWithItsPlace) {
  const TempDir folder = TempDir::Create("millrace_history").value();
  const std::string rows = folder.path() + "/rows";
  EXPECT_TRUE(WriteFileAtomically(rows, "1 0 2 4 5 2 4 5\n1 1 1 4 1 6\n").ok());
  EXPECT_TRUE(WriteFileAtomically(folder.path() + "/job", "filelist: \"" + rows + R"("
      class_name: "MultiTrainer" device_worker_name: "HogwildWorker" thread_num: 1
      data_desc { name: "MultiSlotDataFeed" batch_size: 4 multi_slot_desc {
        slots { name: "click" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
        slots { name: "item" type: "uint64" is_used: true }
        slots { name: "shop" type: "uint64" is_used: true } } }
      model {
        table { name: "t" dim: 1 init { uniform: 0.1 } }
        layer { name: "visits" history { slots: ["item", "shop"] table: "t" max_length: 3 } }
        layer { name: "user" embedding { slots: ["item", "shop"] table: "t" } }
        layer { name: "interest" attention { in: "visits" query: "user" units: [2] } }
        layer { name: "y" fc { in: "interest" units: 1 } }
        loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "click" }
        optimizer { sgd { lr: 0.1 } } })")
                  .ok());
  TrainToTheEnd(folder.path() + "/job", folder.path() + "/out");
  EXPECT_TRUE(WriteFileAtomically(rows, "1 0 2 4 5 2 4 5\n1 1 1 4 2 6 7\n").ok());
  Process predictor("predictor", {"--model_dir=" + folder.path() + "/out/model", "--input=" + rows});
  EXPECT_EQ(predictor.Wait(), 3);
  EXPECT_THAT(predictor.errors(), HasSubstr("of " + rows + ":2 has 1 values"));
}

TEST(OutputFolderTest, IsTheOnlyPlaceThatARunWritesTo) {
  const SmallJob small(300, 1);
  const std::string job = small.DeepJob("");
  const std::string here = small.folder() + "/here";
  std::filesystem::create_directory(here);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(here);
  for (const char* more : {"--output_dir=../out", "--resume=never", "--validate_only"}) {
    Process trainer("trainer", {"--trainer_desc=" + job, more});
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  }
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::is_empty(here));
}

TEST(ValidateOnlyTest, FindsWhatSyncCannotTrain) {
  const SmallJob small(300, 1);
  const std::string job = small.DeepJob("dist { update: SYNC micro_batches: 2 } thread_num: 1");
  std::string text = ReadFile(job).value();
  const std::string last = "layer { name: \"y\" fc { in: \"h\"";
  ASSERT_NE(text.find(last), std::string::npos);
  text.replace(text.find(last), last.size(),
               "layer { name: \"n\" batch_norm { in: \"h\" } } layer { name: \"y\" fc { in: \"n\"");
  std::ofstream(job) << text;
  Process trainer("trainer", {"--trainer_desc=" + job, "--validate_only"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("dist.update: SYNC: the forward part keeps from batch to batch: \"n.mean\""));
}

TEST(NoRowsTest, AreNoTrainingAndNoEvaluation) {
  const SmallJob small(300, 1);
  const std::string empty = small.folder() + "/empty";
  std::ofstream(empty) << "\n";
  for (const char* dataset : {"QueueDataset", "InMemoryDataset"}) {
    const std::string out = small.folder() + "/out";
    const std::string with = "dataset.class_name=\"" + std::string(dataset) + "\"";
    Process trainer("trainer", {"--trainer_desc=" + small.DeepJob("\nfilelist: \"" + empty + "\""), "--set", with,
                                "--output_dir=" + out});
    EXPECT_EQ(trainer.Wait(), 3) << trainer.errors();
    EXPECT_THAT(trainer.errors(),
                HasSubstr("nothing to train on: no row came out of " + empty + " with 1 line (blank_line 1)"));
    EXPECT_FALSE(std::filesystem::exists(out + "/model")) << "a model that saw no row was saved";

    Process evaluated("trainer", {"--trainer_desc=" + small.DeepJob("eval { filelist: \"" + empty + "\" }"), "--set",
                                  with, "--output_dir=" + out});
    EXPECT_EQ(evaluated.Wait(), 3) << evaluated.errors();
    EXPECT_THAT(evaluated.errors(), HasSubstr("nothing to evaluate: no row came out of " + empty + " with 1 line"));
  }
}

TEST(OutputFolderTest, AFolderOfTheUsersIsNotReplacedByTheModel) {
  const SmallJob small(100, 1);
  const std::string out = small.folder() + "/out";
  std::filesystem::create_directories(out + "/model");
  const std::vector<std::string> flags = {"--trainer_desc=" + small.DeepJob(""), "--output_dir=" + out};
  EXPECT_EQ(Process("trainer", flags).Wait(), 0);  // an empty one is nobody's loss
  EXPECT_EQ(Process("trainer", flags).Wait(), 0);  // an older model is ours
  std::filesystem::remove_all(out + "/model");
  std::filesystem::create_directories(out + "/model/src");
  Process trainer("trainer", flags);
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("\"" + out + "/model\" contains files that are not part of a saved model"));
  EXPECT_TRUE(std::filesystem::exists(out + "/model/src"));
  std::filesystem::remove_all(out + "/model");
  std::filesystem::create_directories(out + "/model");
  std::ofstream(out + "/model/MODEL") << "a plan of the house";
  Process other("trainer", flags);
  EXPECT_EQ(other.Wait(), 2);
  EXPECT_THAT(other.errors(), HasSubstr("contains files that are not part of a saved model (\"MODEL\")"));
  EXPECT_EQ(ReadFile(out + "/model/MODEL").value(), "a plan of the house");
  std::filesystem::remove_all(out + "/model");
  EXPECT_EQ(Process("trainer", flags).Wait(), 0);
  std::ofstream(out + "/model/notes.txt") << "mine";
  Process beside("trainer", flags);
  EXPECT_EQ(beside.Wait(), 2);
  EXPECT_THAT(beside.errors(), HasSubstr("contains files that are not part of a saved model (\"notes.txt\")"));
  EXPECT_EQ(ReadFile(out + "/model/notes.txt").value(), "mine");
  std::filesystem::remove_all(out + "/model");
  std::ofstream(out + "/model") << "mine";
  Process file("trainer", flags);
  EXPECT_EQ(file.Wait(), 2);
  EXPECT_THAT(file.errors(), HasSubstr("\"" + out + "/model\" is a file, and a saved model is a folder"));
  EXPECT_EQ(ReadFile(out + "/model").value(), "mine");
}

TEST(OutputFolderTest, AFolderOfTheUsersIsNotReplacedByAnExport) {
  const SmallJob small(100, 1);
  const std::string mine = small.folder() + "/mine";
  for (const char* file : {"offline.onnx", "model.pdmodel"}) {
    for (const char* format : {"ONNX", "PADDLE"}) {
      std::filesystem::create_directories(mine);
      std::ofstream(mine + "/" + file) << "a network of mine";
      std::ofstream(mine + "/thesis.tex") << "years";
      const std::string exports =
          std::string("output { export { format: ") + format + " vocabulary: 1000000 dir: \"" + mine + "\" } }";
      Process trainer("trainer", {"--trainer_desc=" + small.DeepJob(exports), "--output_dir=" + small.folder() + "/out",
                                  "--set", "model.table[0].key=ID"});
      EXPECT_EQ(trainer.Wait(), 2) << file << format;
      EXPECT_THAT(trainer.errors(),
                  HasSubstr("contains files that are not part of an exported model (\"thesis.tex\")"));
      EXPECT_EQ(ReadFile(mine + "/thesis.tex").value(), "years");
      std::filesystem::remove(mine + "/thesis.tex");
      Process again("trainer", {"--trainer_desc=" + small.DeepJob(exports), "--output_dir=" + small.folder() + "/out",
                                "--set", "model.table[0].key=ID"});
      EXPECT_EQ(again.Wait(), 0) << again.errors();
      std::filesystem::remove_all(mine);
    }
  }
}

TEST(OutputFolderTest, AFileInItsPlaceIsNamed) {
  const SmallJob small(20, 1);
  const std::string file = small.folder() + "/file";
  std::ofstream(file) << "mine";
  for (const std::string& folder : {file, file + "/out/more"}) {
    Process trainer("trainer", {"--trainer_desc=" + small.DeepJob(""), "--output_dir=" + folder});
    EXPECT_EQ(trainer.Wait(), 3);
    EXPECT_THAT(trainer.errors(), HasSubstr("cannot make the output folder \"" + folder + "\": \"" + file +
                                            "\" is a file; name another --output_dir, or move the file away"));
  }
  EXPECT_EQ(ReadFile(file).value(), "mine");
}

TEST(OutputFolderTest, IsNoModelAndItsModelIsNamed) {
  const SmallJob small(20, 1);
  const std::string out = small.folder() + "/out";
  ASSERT_EQ(Process("trainer", {"--trainer_desc=" + small.DeepJob(""), "--output_dir=" + out}).Wait(), 0);
  Process predictor("predictor", {"--model_dir=" + out, "--input=" + small.files()[0]});
  EXPECT_EQ(predictor.Wait(), 3);
  EXPECT_THAT(predictor.errors(), HasSubstr("\"" + out + "\" is the output folder of a run, and its model lies in \"" +
                                            out + "/model\": name that folder"));
  for (const std::string command : {"model", "features"}) {
    Process inspect("inspect", {command, "--model_dir=" + out});
    EXPECT_EQ(inspect.Wait(), 3);
    EXPECT_THAT(inspect.errors(), HasSubstr("its model lies in \"" + out + "/model\": name that folder"));
    Process bare("inspect", {command, out + "/model"});
    EXPECT_EQ(bare.Wait(), 2);
    EXPECT_THAT(bare.errors(), HasSubstr("is given by a flag: inspect " + command + " --model_dir=" + out + "/model"));
  }
}

TEST(TraceTest, ShowsFilesCommandsAndParsingBesideTheBatches) {
  const SmallJob small(300, 2);
  const std::string out = small.folder() + "/out";
  const std::string job =
      small.DeepJob("thread_num: 1 epochs: 2 output { trace: true trace_first_batch: 0 trace_batches: 8 }");
  Process trainer("trainer",
                  {"--trainer_desc=" + job, "--output_dir=" + out, "--set=data_desc.pipe_command=\"cat -\""});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::string trace = ReadFile(out + "/trace.json").value();
  for (const char* thread : {"worker 0", "reader 0", "files 0"}) {
    EXPECT_THAT(trace, HasSubstr("\"args\":{\"name\":\"" + std::string(thread) + "\"}")) << thread;
  }
  for (const char* span : {"file", "pipe", "parse", "wait for batch", "batch", "fused_adam"}) {
    EXPECT_THAT(trace, HasSubstr("\"name\":\"" + std::string(span) + "\",\"ts\"")) << span;
  }
  EXPECT_THAT(trace, HasSubstr("\"args\":{\"file\":\"" + small.files()[1] + "\"}"));
}

TEST(NoRowsTest, ALastBatchThatIsDroppedIsNamed) {
  const SmallJob small(100, 1);
  Process trainer("trainer",
                  {"--trainer_desc=" + small.DeepJob("thread_num: 2"), "--output_dir=" + small.folder() + "/out",
                   "--set=data_desc.batch_size=101", "--set=data_desc.drop_last=true"});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("nothing to train on: no row came out of " + small.files()[0] +
                                          " with 100 lines; drop_last leaves out a batch of fewer than 101 rows"));
}

TEST(ValidateOnlyTest, ReadsOnBehindTheFirstBatchForAMoment) {
  const SmallJob small(100, 2);
  const auto validate = [&small](const std::string& pipe) {
    return Process("trainer", {"--trainer_desc=" + small.DeepJob(""), "--validate_only",
                               "--set=data_desc.pipe_command=\"" + pipe + "\""});
  };
  Process fails = validate("cat; exit 4");
  EXPECT_EQ(fails.Wait(), 3);
  EXPECT_THAT(fails.errors(), HasSubstr("part-0: command exited with status 4 after 50 rows"));
  Process garbage = validate("cat; echo garbage");
  EXPECT_EQ(garbage.Wait(), 3);
  EXPECT_THAT(garbage.errors(), HasSubstr("part-0:51:1: slot \"label\": expected a count"));
  Process silent = validate("cat; exec sleep 1000");
  EXPECT_EQ(silent.Wait(), 0) << silent.errors();
  EXPECT_THAT(silent.output(), HasSubstr("the job is valid"));
  Process endless = validate("yes 1 1 1 1 1 1 1 1 1 1");
  EXPECT_EQ(endless.Wait(), 0) << endless.errors();
  EXPECT_FALSE(AnyProcessMentions("yes 1 1 1 1 1 1 1 1 1 1"));

  std::ofstream(small.files()[0], std::ios::trunc).flush();
  Process empty = validate("cat");
  EXPECT_EQ(empty.Wait(), 0) << empty.errors();
  std::ofstream(small.files()[1], std::ios::trunc).flush();
  Process nothing = validate("cat");
  EXPECT_EQ(nothing.Wait(), 3);
  EXPECT_THAT(nothing.errors(),
              HasSubstr("nothing to validate: no row came out of 2 files from " + small.files()[0] + " on"));
}

TEST(TrainingCurveTest, HasAPointAnEpochHoweverFewBatchesItHas) {
  const SmallJob small(200, 1);
  for (const std::string period : {"0", "1000"}) {
    const std::string out = small.folder() + "/out-" + period;
    const auto train = [&](const std::string& epochs) {
      Process trainer("trainer", {"--trainer_desc=" + small.DeepJob("update_mode: SERIAL epochs: " + epochs),
                                  "--set=fetch_config.print_period=" + period, "--output_dir=" + out, "--resume=auto"});
      EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
      EXPECT_EQ(trainer.output(), "") << "nothing is printed";
      std::istringstream lines(ReadFile(out + "/metrics.jsonl").value());
      std::vector<std::string> points;
      for (std::string line; std::getline(lines, line);) points.push_back(line);
      return points;
    };
    const std::vector<std::string> first = train("2");
    ASSERT_EQ(first.size(), 2U);
    EXPECT_THAT(first[0], testing::StartsWith(R"({"step":7,"epoch":0,"examples":200,"loss":0.)"));
    EXPECT_THAT(first[1],
                testing::ContainsRegex(R"(^\{"step":14,"epoch":1,"examples":400,"loss":0.*,"auc":[01].*,"gauc":)"));
    const std::vector<std::string> longer = train("3");
    ASSERT_EQ(longer.size(), 3U);
    EXPECT_EQ(longer[1], first[1]);
    EXPECT_THAT(longer[2], testing::StartsWith(R"({"step":21,"epoch":2,"examples":600,)"));
    int scalars = 0;
    for (const auto& events : std::filesystem::directory_iterator(out + "/tensorboard")) {
      const std::string bytes = ReadFile(events.path().string()).value();
      for (size_t at = bytes.find("train/auc"); at != std::string::npos; at = bytes.find("train/auc", at + 1))
        ++scalars;
    }
    EXPECT_EQ(scalars, 3);
  }
}

TEST(StrayWordTest, AJobWithoutItsFlagIsToldTheCommand) {
  const SmallJob small(10, 1);
  const std::string job = small.DeepJob("");
  Process trainer("trainer", {job, "--output_dir=" + small.folder() + "/out"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("trainer --trainer_desc=" + job));
  Process inspect("inspect", {"stats", job});
  EXPECT_EQ(inspect.Wait(), 2);
  EXPECT_THAT(inspect.errors(), HasSubstr("inspect stats --trainer_desc=" + job));
  Process predictor("predictor", {small.folder(), "--input=" + small.files()[0]});
  EXPECT_EQ(predictor.Wait(), 2);
  EXPECT_THAT(predictor.errors(), HasSubstr("predictor --model_dir=" + small.folder()));
}

TEST(StrayWordTest, IsNoInput) {
  Process predictor("predictor", {"--model_dir=model", "part-0"});
  EXPECT_EQ(predictor.Wait(), 2);
  EXPECT_THAT(predictor.errors(), HasSubstr("\"part-0\" is no flag; the lines to score are --input=FILE"));
  Process clickgen("clickgen", {"--output_dir=-", "1000"});
  EXPECT_EQ(clickgen.Wait(), 2);
  EXPECT_THAT(clickgen.errors(), HasSubstr("\"1000\" is no flag"));
}

TEST(BrokenOutputTest, APredictorWhoseReaderIsGoneEndsQuietlyAndLeavesNoChild) {
  const SmallJob small(3000, 1);
  const std::string out = small.folder() + "/out";
  ASSERT_TRUE(RunJob(*MakeJob(small.DeepJob(""), out), "never", "last", {}).ok());
  const std::string token = "millrace-" + std::to_string(getpid()) + "-unread";
  Process predictor("predictor",
                    {"--model_dir=" + out + "/model", "--input=" + small.files()[0],
                     "--pipe_command=for i in {1..200}; do cat " + small.files()[0] + "; done; sleep 1000 # " + token});
  std::string line;
  ASSERT_TRUE(predictor.ReadLine(&line)) << predictor.errors();
  predictor.CloseOutput();
  EXPECT_EQ(predictor.Wait(), 128 + SIGPIPE);
  EXPECT_EQ(predictor.errors(), "");
  EXPECT_FALSE(AnyProcessMentions(token));
}

TEST(BrokenOutputTest, InspectAndTrainerWhoseReaderIsGoneEndQuietly) {
  const SmallJob small(20000, 1);
  const std::string desc = "--trainer_desc=" + small.DeepJob("dump_fields: [\"ones\", \"uid\"] dump_fields_path: \"" +
                                                             small.folder() + "/dump\"");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"inspect", "head", desc, "--batches=1000", "--format=jsonl"},
        {"inspect", "stats", desc},
        {"trainer", desc, "--print_config"}}) {
    Process program(command[0], {command.begin() + 1, command.end()});
    program.CloseOutput();
    EXPECT_EQ(program.Wait(), 128 + SIGPIPE) << command[0] << " " << command[1];
    EXPECT_EQ(program.errors(), "") << command[0] << " " << command[1];
  }
}

TEST(PredictorTest, KeepsOneScoreALineWhateverTrainingDidWithBadLines) {
  const SmallJob small(100, 1);
  const std::string job = small.DeepJob("");
  const std::string input = small.folder() + "/input";
  const std::string lines = ReadFile(small.files()[0]).value();
  for (const char* action : {"SKIP", "QUARANTINE"}) {
    const std::string out = small.folder() + "/" + action;
    Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out,
                                "--set=data_desc.bad_lines={ action: " + std::string(action) + " }"});
    ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
    std::ofstream(input) << lines;
    Process whole("predictor", {"--model_dir=" + out + "/model", "--input=" + input});
    EXPECT_EQ(whole.Wait(), 0) << whole.errors();
    std::ofstream(input) << "x\n" << lines;
    Process broken("predictor", {"--model_dir=" + out + "/model", "--input=" + input});
    EXPECT_EQ(broken.Wait(), 3);
    EXPECT_THAT(broken.errors(), HasSubstr("input:1:1: slot \"label\": expected a count of values, found \"x\"\n"
                                           "  the score does not depend on it: --without=label"));
  }
  std::ofstream(input) << "\n" << lines;
  const std::string model = "--model_dir=" + small.folder() + "/SKIP/model";
  Process blank("predictor", {model, "--input=" + input});
  EXPECT_EQ(blank.Wait(), 0);
  EXPECT_THAT(blank.errors(), HasSubstr("warning: 1 blank lines of the input have no score"));
  Process silent("predictor", {model, "--input=" + input, "--pipe_command=cat > /dev/null"});
  EXPECT_EQ(silent.Wait(), 3);
  EXPECT_THAT(silent.errors(),
              HasSubstr("nothing to score: pipe_command `cat > /dev/null` wrote nothing for its file"));
}

TEST(PipeCommandTest, ABadLineIsSaidToBeOneOfTheCommandsOutput) {
  const SmallJob small(100, 1);
  const std::string job = small.DeepJob("");
  const std::string file = small.files()[0];
  for (const char* dataset : {"QueueDataset", "InMemoryDataset"}) {
    Process trainer("trainer", {"--trainer_desc=" + job, "--set=dataset.class_name=\"" + std::string(dataset) + "\"",
                                "--set=data_desc.pipe_command=\"sed 1,3d; echo x\""});
    EXPECT_EQ(trainer.Wait(), 3);
    EXPECT_THAT(trainer.errors(), HasSubstr(file +
                                            ":98:1: slot \"label\": expected a count of values, found \"x\" "
                                            "(line 98 of what `sed 1,3d; echo x` wrote for " +
                                            file + ")"));
  }
}

TEST(PipeCommandTest, ThatWritesNothingIsBlamedNotTheFiles) {
  const SmallJob small(100, 2);
  const std::string job = small.DeepJob("");
  for (const char* validate : {"--novalidate_only", "--validate_only"}) {
    Process trainer("trainer", {"--trainer_desc=" + job, validate, "--set=data_desc.pipe_command=\"cat > /dev/null\""});
    EXPECT_EQ(trainer.Wait(), 3);
    EXPECT_THAT(trainer.errors(),
                testing::ContainsRegex("pipe_command `cat > /dev/null` wrote nothing for any of 2 files, and said that "
                                       "all is well: exit code 0, [1-9][0-9]* bytes in, 0 bytes out"));
  }
}

TEST(BadLinesTest, LeftOutOnesAreShownWithTheFileThatHasThem) {
  const SmallJob small(100, 1);
  const std::string job = small.DeepJob("eval { filelist: \"" + small.folder() + "/eval\" }");
  const std::string file = small.files()[0];
  std::ofstream(small.folder() + "/eval") << ReadFile(file).value() << "y\n";
  std::ofstream(file, std::ios::app) << "x\n";
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out,
                              "--set=data_desc.bad_lines={ action: QUARANTINE max_fraction: 1 }"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::string place = file + ":101:1: slot \"label\": expected a count of values, found \"x\"";
  EXPECT_THAT(trainer.errors(), HasSubstr("  bad lines   1 of 101 left out; the first:\n              " + place +
                                          "\n              all of them: " + out + "/bad_lines.txt\n"));
  EXPECT_THAT(trainer.errors(),
              HasSubstr("  bad lines   1 of 101 of the evaluation left out; the first:\n              " +
                        small.folder() + "/eval:101:1: "));
  const std::string run = ReadFile(out + "/run.json").value();
  EXPECT_THAT(run, HasSubstr("part-0:101:1: slot"));
  EXPECT_THAT(run, HasSubstr("\"quarantine_path\": \"" + out + "/bad_lines.txt\""));
}

TEST(BrokenOutputTest, WhatIsPrintedWithClosedStreamsGoesIntoNoFile) {
  const SmallJob small(300, 1);
  const std::string out = small.folder() + "/out";
  const std::string job = small.DeepJob("eval { filelist: \"" + small.files()[0] + "\" }");
  Process::Options closed;
  closed.no_output = true;
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out}, closed);
  ASSERT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"examples\": 300"));
  std::istringstream lines(ReadFile(out + "/metrics.jsonl").value());
  for (std::string line; std::getline(lines, line);) EXPECT_THAT(line, testing::StartsWith("{\"step\":"));
  for (const std::string& file : FolderContent(out)) EXPECT_THAT(file, testing::Not(HasSubstr("time: [")));
}

TEST(BrokenOutputTest, ATrainerWhosePrintsNobodyReadsTrainsOn) {
  const SmallJob small(3000, 1);
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob("epochs: 3"), "--output_dir=" + out});
  std::string line;
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  trainer.CloseOutput();
  EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_TRUE(std::filesystem::exists(out + "/model/MODEL"));
  EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"examples\": 9000"));
}

// Five rows make a sample; those that a command keeps back for ever would be waited for as long.
TEST(ValidateJobTest, ShowsTheFirstRowOfACommandThatDoesNotEnd) {
  const SmallJob small(300, 1);
  const std::unique_ptr<JobSession> job =
      MakeJob(small.DeepJob(""), "", {"data_desc.pipe_command=head -n 3; exec sleep 1000"});
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Status status = ValidateJob(*job, {}, std::chrono::milliseconds(200));
  const std::string errors = testing::internal::GetCapturedStderr();
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(errors, HasSubstr("5 rows did not come within 0.2 seconds: reading from the start again"));
  EXPECT_THAT(shown, HasSubstr("the job is valid"));
}

TEST(ValidateJobTest, LeavesTheQuarantineAlone) {
  const SmallJob small(300, 1);
  std::ofstream(small.files()[0], std::ios::app) << "x\n";
  const std::string bad = small.folder() + "/bad";
  const std::unique_ptr<JobSession> job =
      MakeJob(small.DeepJob(""), "",
              {"data_desc.bad_lines.action=QUARANTINE", "data_desc.bad_lines.quarantine_path=\"" + bad + "\""});
  testing::internal::CaptureStdout();
  const Status status = ValidateJob(*job, {});
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("the job is valid"));
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(ReadFile(bad).value(), "");
}

// Behind a stop of the user's there is no second try.
TEST(ValidateJobTest, AStopEndsTheWaitForRows) {
  const SmallJob small(300, 1);
  const std::unique_ptr<JobSession> job = MakeJob(small.DeepJob(""), "", {"data_desc.pipe_command=exec sleep 1000"});
  std::stop_source stop;
  const DelayedStop soon(stop, std::chrono::milliseconds(100));
  EXPECT_EQ(ValidateJob(*job, stop.get_token()).code(), StatusCode::kCancelled);
}

TEST(Clickgen, ReportsAFileThatGrewTooLarge) {
  const TempDir folder = TempDir::Create("clickgen").value();
  Process clickgen("clickgen", {"--output_dir=" + folder.path(), "--rows=3000"},
                   {.file_size_limit = 20000, .input = "/dev/null"});
  EXPECT_EQ(clickgen.Wait(), 3) << clickgen.errors();
  EXPECT_THAT(clickgen.errors(), HasSubstr("File too large"));
}

}  // namespace
}  // namespace millrace
