#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "core/file.h"
#include "core/rng.h"
#include "e2e/process.h"
#include "e2e/reader_job.h"
#include "e2e/small_job.h"
#include "framework/lod_tensor_codec.h"
#include "reader/recordio.h"
#include "shared_data.h"
#include "threads_now.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

/// The parameters that a job ends with.
std::vector<std::string> TrainedBy(const std::string& job, const std::string& save_dir,
                                   std::vector<std::string> flags = {}) {
  flags.insert(flags.begin(), {"--trainer_desc=" + job, "--set", "program.save_dir=\"" + save_dir + "\""});
  Process trainer("trainer", flags);
  EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
  return FolderContent(save_dir);
}

TEST(SelfFedProgram, TrainsToTheNumbersOfADataset) {
  const ReaderJob data(500);
  std::map<std::string, std::vector<std::string>> trained;
  for (const std::string name : {"has_next", "multi_pass", "dataset"}) {
    const std::string saved = data.folder() + "/" + name + "_saved";
    trained[name] = TrainedBy(data.Copy(name, ""), saved);
    ASSERT_GE(trained[name].size(), 3U) << name;
  }
  EXPECT_EQ(trained["has_next"], trained["dataset"]);
  EXPECT_EQ(trained["multi_pass"], trained["dataset"]);
}

TEST(SelfFedProgram, ReadsEveryRowOncePerPassInOrder) {
  const ReaderJob data(50);
  for (const std::string name : {"has_next", "multi_pass"}) {
    Process trainer("trainer",
                    {"--trainer_desc=" + data.Copy(name, "",
                                                   {{"fetch_var_names: \"cost\"", "fetch_var_names: \"label\""},
                                                    {"print_period: 32", "print_period: 1"}}),
                     "--output_dir=" + data.folder() + "/" + name + "_out"});
    ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
    std::vector<int> read;
    std::istringstream lines(trainer.output());
    for (std::string line; std::getline(lines, line);) {
      std::istringstream values(line.substr(line.rfind('[') + 1));
      for (int value = 0; values >> value;) read.push_back(value);
    }
    std::vector<int> expected;
    for (int pass = 0; pass < 3; ++pass) expected.insert(expected.end(), data.labels().begin(), data.labels().end());
    EXPECT_EQ(read, expected) << name;
    EXPECT_THAT(ReadFile(data.folder() + "/" + name + "_out/run.json").value(), HasSubstr("\"examples\": 300"));
  }
}

class KilledSelfFedRun : public testing::TestWithParam<const char*> {};

TEST_P(KilledSelfFedRun, EndsWithTheBytesOfAnUndisturbedOne) {
  const ReaderJob data(2000);
  const std::string name = GetParam();
  const std::string saved = data.folder() + "/saved";
  const std::string job = data.Copy(name, "checkpoint { every_steps: 7 } output { tensorboard: false }",
                                    {{"print_period: 32", "print_period: 2"}});
  const std::vector<std::string> expected = TrainedBy(job, saved, {"--output_dir=" + data.folder() + "/calm"});
  ASSERT_GE(expected.size(), 3U);
  std::filesystem::remove_all(saved);
  const std::vector<std::string> flags = {"--trainer_desc=" + job, "--output_dir=" + data.folder() + "/killed",
                                          "--resume=auto", "--set", "program.save_dir=\"" + saved + "\""};
  Rng rng(3);
  for (int kill = 0; kill < 4; ++kill) {
    Process trainer("trainer", flags);
    std::string line;
    const uint64_t lines = 10 + rng.Below(30);
    for (uint64_t i = 0; i < lines && trainer.ReadLine(&line); ++i) {
    }
    // The third one is asked to end, and leaves a checkpoint where it stands.
    trainer.Signal(kill == 2 ? SIGINT : SIGKILL);
    trainer.Wait();
  }
  Process last("trainer", flags);
  ASSERT_EQ(last.Wait(), 0) << last.errors();
  EXPECT_THAT(last.errors(), HasSubstr("going on from"));
  EXPECT_EQ(FolderContent(saved), expected);
}

INSTANTIATE_TEST_SUITE_P(Programs, KilledSelfFedRun, testing::Values("has_next", "multi_pass"),
                         [](const auto& param_info) { return std::string(param_info.param); });

TEST(SelfFedProgram, WithoutALoopIsRunBatchByBatchForSomeEpochs) {
  const ReaderJob data(500);
  const std::string saved = data.folder() + "/saved";
  const std::vector<std::string> expected = TrainedBy(data.Copy("dataset", ""), saved);
  // The step program, which reads by itself here.
  const std::string job = data.Copy("has_next", " epochs: 3");
  std::string step = ReadFile(data.folder() + "/step_main.pbtxt").value();
  step = Replaced(
      step, "parent_idx: -1\n",
      "parent_idx: -1\n  vars { name: \"batches\" persistable: true type { type: READER } }\n"
      "  ops { type: \"read\" inputs { parameter: \"Reader\" arguments: \"batches\" } outputs { parameter: \"Out\" "
      "arguments: \"x\" arguments: \"label\" } }\n");
  std::ofstream(data.folder() + "/has_next_main.pbtxt") << step;
  std::filesystem::remove_all(saved);
  EXPECT_EQ(TrainedBy(job, saved), expected);
}

TEST(SelfFedProgram, ReportsABrokenLineWithinTheLoopAndLeavesNoThread) {
  const ReaderJob data(100);
  std::ofstream(data.file(1), std::ios::app) << "1,2,3\n";
  const int before = ThreadsNow();
  {
    const std::unique_ptr<Job> job = MakeJob(data.Copy("has_next", ""), "");
    const Result<RunReport> report = TrainJob(*job);
    EXPECT_EQ(report.status().code(), StatusCode::kBadData);
    EXPECT_EQ(report.status().message(), "op[3] while: block 1 op[0] has_next (Out: \"has_next\"): " + data.file(1) +
                                             ":101: 3 columns; the outputs take 9");
  }
  EXPECT_EQ(ThreadsNow(), before);
  Process trainer("trainer", {"--trainer_desc=" + data.Copy("has_next", "")});
  EXPECT_EQ(trainer.Wait(), 3);
}

TEST(SelfFedProgram, StopsWhenItIsAskedTo) {
  const ReaderJob data(100);
  const std::unique_ptr<Job> job = MakeJob(data.Copy("has_next", ""), "");
  std::stop_source stop;
  stop.request_stop();
  const Result<RunReport> report = TrainJob(*job, stop.get_token());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_TRUE(report.value().interrupted);
}

TEST(SelfFedProgram, DoesNotGoOnWithOtherReaders) {
  const ReaderJob data(100);
  const std::string out = data.folder() + "/out";
  TrainedBy(data.Copy("has_next", ""), out, {"--output_dir=" + out});
  const std::string job =
      data.Copy("has_next", "", {{"\"batch_size\" type: INT i: 32", "\"batch_size\" type: INT i: 16"}});
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto"});
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("reader rows was \"create_batch_reader(files) batch_size 32 discard_leftover "
                                          "false\" and is now \"create_batch_reader(files) batch_size 16 "
                                          "discard_leftover false\""));
}

/// What `trainer` says of a job that it does not take, and its exit code.
std::string Refusal(const std::string& job) {
  Process trainer("trainer", {"--trainer_desc=" + job});
  EXPECT_EQ(trainer.Wait(), 2);
  return trainer.errors();
}

TEST(SelfFedProgram, IsRefusedWithWhatItCannotHave) {
  const ReaderJob data(10);
  const std::string why = ": the program has no data_desc, so it reads its data itself, ";
  EXPECT_THAT(Refusal(data.Copy("has_next", "thread_num: 2")),
              HasSubstr("thread_num is 2" + why + "in one thread; open_files has a thread_num for reading"));
  EXPECT_THAT(Refusal(data.Copy("has_next", "eval { filelist: \"" + data.file(0) + "\" }")),
              HasSubstr("eval" + why + "and there is no dataset that eval could use"));
  EXPECT_THAT(Refusal(data.Copy("has_next", "epochs: 2")),
              HasSubstr("the while operator of program.main says how long it trains; leave epochs out"));
  data.Copy("dataset", "");
  EXPECT_THAT(
      Refusal(data.Copy("has_next", "", {{data.folder() + "/has_next_main", data.folder() + "/step_main"}})),
      HasSubstr("program.main: no operator reads from a reader, and the job has no data_desc and filelist to feed "
                "the program from: give them, or make readers in program.startup and read them"));
}

/// The rows of digits.csv as records, for the RecordIO form of the test.
void WriteRecords(const std::string& csv, const std::string& path) {
  std::ifstream in(csv);
  RecordIOWriter writer = RecordIOWriter::Create(path).value();
  for (std::string line; std::getline(in, line);) {
    std::vector<LoDTensor> record(2);
    float* pixels = record[0].values.Resize<float>({1, 64});
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 64 && std::getline(fields, field, ','); ++i) pixels[i] = std::stof(field);
    std::getline(fields, field, ',');
    record[1].values.Resize<int64_t>({1, 1})[0] = std::stoll(field);
    ASSERT_TRUE(writer.Append(record).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
}

std::vector<float> SavedTensor(const std::string& path) {
  const std::string bytes = ReadFile(path).value();
  Tensor tensor;
  EXPECT_TRUE(ReadLoDTensor(bytes, path, &tensor).ok());
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

double DigitsAccuracy(const std::vector<std::string>& rows, const std::vector<float>& w, const std::vector<float>& b) {
  int right = 0;
  for (const std::string& row : rows) {
    std::vector<float> scores = b;
    std::istringstream fields(row);
    std::string field;
    for (size_t i = 0; i < 64; ++i) {
      std::getline(fields, field, ',');
      for (size_t k = 0; k < 10; ++k) scores[k] += std::stof(field) * w[10 * i + k];
    }
    std::getline(fields, field, ',');
    right += std::max_element(scores.begin(), scores.end()) - scores.begin() == std::stol(field) ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(rows.size());
}

class Digits : public testing::TestWithParam<const char*> {};

TEST_P(Digits, AreClassifiedAsWellAsTheirReadmeSays) {
  MR_SHARED_OR_SKIP(shared);
  const ReaderJob data(1);
  std::vector<std::string> rows;
  const std::string unpack = "gzip -dc " + shared + "/data/digits_iris/digits.csv.gz";
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(unpack.c_str(), "r"), pclose);
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), pipe.get()) != nullptr) {
    std::string row = buffer;
    row.pop_back();
    if (std::count(row.begin(), row.end(), ',') == 64) rows.push_back(row);
  }
  ASSERT_EQ(rows.size(), 1797U);
  const size_t kTrained = 1437;
  for (int f = 0; f < 2; ++f) {
    std::ofstream out(data.file(f));
    for (size_t i = f == 0 ? 0 : kTrained / 2; i < (f == 0 ? kTrained / 2 : kTrained); ++i) out << rows[i] << '\n';
  }
  std::map<std::string, std::string> replaced = {
      {"dims: 8 dims: 4", "dims: 64 dims: 10"},
      {"dims: -1 dims: 8", "dims: -1 dims: 64"},
      {"dims: -1 dims: 4", "dims: -1 dims: 10"},
      {"{ data_type: FP32 dims: 4 }", "{ data_type: FP32 dims: 10 }"},
      {"longs: 8 longs: 4", "longs: 64 longs: 10"},
      {"LONGS longs: 4 }", "LONGS longs: 10 }"},
      {"ints: -1 ints: 8", "ints: -1 ints: 64"},
      {"FLOAT f: 0.1", "FLOAT f: 0.01"},
      {"pass_num\" type: INT i: 3", "pass_num\" type: INT i: 30"},
      // Shuffled before they are put together.
      {"type: \"create_batch_reader\"\n    inputs { parameter: \"UnderlyingReader\" arguments: \"files\" }",
       "type: \"create_shuffle_reader\"\n    inputs { parameter: \"UnderlyingReader\" arguments: \"files\" }\n    "
       "outputs { "
       "parameter: \"Out\" arguments: \"shuffled\" }\n    attrs { name: \"buffer_size\" type: INT i: 2000 }\n  }\n  "
       "ops {\n "
       "   type: \"create_batch_reader\"\n    inputs { parameter: \"UnderlyingReader\" arguments: \"shuffled\" }"},
      {"vars { name: \"rows\"",
       "vars { name: \"shuffled\" persistable: true type { type: READER } }\n  vars { name: \"rows\""},
  };
  if (std::string(GetParam()) == "recordio") {
    for (int f = 0; f < 2; ++f) {
      WriteRecords(data.file(f), data.folder() + "/points-" + std::to_string(f) + ".recordio");
    }
    replaced["points-0.csv"] = "points-0.recordio";
    replaced["points-1.csv"] = "points-1.recordio";
  }
  const std::string saved = data.folder() + "/saved";
  TrainedBy(data.Copy("multi_pass", "", replaced), saved);
  const double accuracy = DigitsAccuracy({rows.begin() + static_cast<std::ptrdiff_t>(kTrained), rows.end()},
                                         SavedTensor(saved + "/w"), SavedTensor(saved + "/b"));
  EXPECT_GE(accuracy, 0.90);
}

INSTANTIATE_TEST_SUITE_P(Formats, Digits, testing::Values("csv", "recordio"),
                         [](const auto& param_info) { return std::string(param_info.param); });

}  // namespace
}  // namespace millrace
