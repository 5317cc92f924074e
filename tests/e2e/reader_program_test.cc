#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <tuple>

#include "core/file.h"
#include "core/rng.h"
#include "e2e/process.h"
#include "e2e/reader_job.h"
#include "e2e/small_job.h"
#include "process_tree.h"
#include "runtime/lod_tensor_codec.h"
#include "sanitized.h"
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

TEST(ReaderProgram, TrainsToTheNumbersOfADataset) {
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

TEST(ReaderProgram, ReadsEveryRowOncePerPassInOrder) {
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

TEST(ReaderProgram, FilesWithoutARowAreNoTraining) {
  const ReaderJob data(0);
  Process trainer("trainer", {"--trainer_desc=" + data.Copy("has_next", "")});
  EXPECT_EQ(trainer.Wait(), 3);
  EXPECT_THAT(trainer.errors(), HasSubstr("nothing to train on: reader \"batches\" delivered no item"));
}

TEST(ReaderProgram, AdviceIsWhatSuchAProgramCanFollow) {
  const ReaderJob data(20);
  Process trainer("trainer", {"--trainer_desc=" + data.Copy("has_next", "")});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  EXPECT_THAT(trainer.errors(), HasSubstr("raise thread_num of open_files"));
  EXPECT_THAT(trainer.errors(), testing::Not(HasSubstr("processors train")));
}

TEST(ReaderProgram, AStopLeavesAPipeThatStaysSilent) {
  const ReaderJob data(100);
  std::filesystem::remove(data.file(1));
  ASSERT_EQ(::mkfifo(data.file(1).c_str(), 0600), 0);
  Process trainer("trainer",
                  {"--trainer_desc=" + data.Copy("has_next", "", {{"print_period: 32", "print_period: 1"}})});
  std::string line;
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  trainer.Signal(SIGINT);
  EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
}

class KilledReaderRun : public testing::TestWithParam<const char*> {};

TEST_P(KilledReaderRun, EndsWithTheBytesOfAnUndisturbedOne) {
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

INSTANTIATE_TEST_SUITE_P(Programs, KilledReaderRun, testing::Values("has_next", "multi_pass"),
                         [](const auto& param_info) { return std::string(param_info.param); });

/// A job whose loop asks for more at the begin of a round, or at its end, and the lines that it prints before it waits.
struct WaitingLoop {
  const char* name;
  int lines;
};

class StoppedReaderRun : public testing::TestWithParam<WaitingLoop> {};

TEST_P(StoppedReaderRun, ThatWaitsForDataGoesOnWhereItStood) {
  const ReaderJob data(500);
  const auto& [name, lines] = GetParam();
  const std::string saved = data.folder() + "/saved";
  const std::string job = data.Copy(name, "checkpoint { every_steps: 1000 } output { tensorboard: false }",
                                    {{"print_period: 32", "print_period: 1"}});
  const std::vector<std::string> expected = TrainedBy(job, saved, {"--output_dir=" + data.folder() + "/calm"});
  ASSERT_GE(expected.size(), 3U);
  std::filesystem::remove_all(saved);

  // The second file holds rows for two batches and a bit, and its writer takes his time.
  const std::string rows = ReadFile(data.file(1)).value();
  std::filesystem::rename(data.file(1), data.file(1) + ".whole");
  ASSERT_EQ(mkfifo(data.file(1).c_str(), 0600), 0);
  const int writer = open(data.file(1).c_str(), O_RDWR | O_CLOEXEC);
  size_t end = 0;
  for (int row = 0; row < 100; ++row) end = rows.find('\n', end) + 1;
  ASSERT_EQ(write(writer, rows.data(), end), static_cast<ssize_t>(end));
  const std::string out = data.folder() + "/out";
  const std::vector<std::string> flags = {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto", "--set",
                                          "program.save_dir=\"" + saved + "\""};
  {
    Process trainer("trainer", flags);
    std::string line;
    for (int i = 0; i < lines; ++i) ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
    // A round that asks at its end is printed behind that wait: no line tells when it has come so far.
    WaitUntilIdle(trainer.pid());
    trainer.Signal(SIGINT);
    EXPECT_EQ(trainer.Wait(), 130) << trainer.errors();
    EXPECT_THAT(trainer.errors(), testing::Not(HasSubstr("only the checkpoints of before")));
  }
  close(writer);
  EXPECT_TRUE(std::filesystem::exists(out + "/checkpoints/step-000000000018"));  // 600 rows, 32 a batch
  std::filesystem::rename(data.file(1) + ".whole", data.file(1));
  Process resumed("trainer", flags);
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr("going on from"));
  EXPECT_EQ(FolderContent(saved), expected);
}

INSTANTIATE_TEST_SUITE_P(Programs, StoppedReaderRun,
                         testing::Values(WaitingLoop{"has_next", 18}, WaitingLoop{"multi_pass", 17}),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(ReaderProgram, WithoutALoopIsRunBatchByBatchForSomeEpochs) {
  const ReaderJob data(500);
  const std::string saved = data.folder() + "/saved";
  const std::vector<std::string> expected = TrainedBy(data.Copy("dataset", ""), saved);
  const std::string job = data.Copy("has_next", " epochs: 3");
  data.ReadWithoutLoop();
  std::filesystem::remove_all(saved);
  EXPECT_EQ(TrainedBy(job, saved), expected);

  // An epoch that prints nothing leaves a point of the curve.
  const std::string out = data.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + job, "--output_dir=" + out, "--set=fetch_config.print_period=1000"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  std::istringstream points(ReadFile(out + "/metrics.jsonl").value());
  int64_t epochs = 0;
  for (std::string point; std::getline(points, point); ++epochs) {
    EXPECT_THAT(point, HasSubstr(",\"epoch\":" + std::to_string(epochs) + ",\"examples\":"));
    EXPECT_THAT(point, HasSubstr(",\"cost\":"));
  }
  EXPECT_EQ(epochs, 3);
}

TEST(ReaderProgram, ReportsABrokenLineWithinTheLoopAndLeavesNoThread) {
  const ReaderJob data(100);
  std::ofstream(data.file(1), std::ios::app) << "1,2,3\n";
  const int before = ThreadsNow();
  {
    const std::unique_ptr<JobSession> job = MakeJob(data.Copy("has_next", ""), "");
    const Result<RunReport> report = TrainJob(*job);
    EXPECT_EQ(report.status().code(), StatusCode::kBadData);
    EXPECT_EQ(report.status().message(), "op[3] while: block 1 op[0] has_next (Out: \"has_next\"): " + data.file(1) +
                                             ":101: 3 columns; the outputs take 9");
  }
  EXPECT_EQ(ThreadsOnce(before), before);
  Process trainer("trainer", {"--trainer_desc=" + data.Copy("has_next", "")});
  EXPECT_EQ(trainer.Wait(), 3);
}

TEST(ReaderProgram, StopsWhenItIsAskedTo) {
  const ReaderJob data(100);
  const std::unique_ptr<JobSession> job = MakeJob(data.Copy("has_next", ""), "");
  std::stop_source stop;
  stop.request_stop();
  const Result<RunReport> report = TrainJob(*job, stop.get_token());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_TRUE(report.value().interrupted);
}

TEST(ReaderProgram, DoesNotGoOnWithOtherReaders) {
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

TEST(ReaderProgram, IsRefusedWithWhatItCannotHave) {
  const ReaderJob data(10);
  const std::string why = ": the program has no data_desc, so it reads its data itself, ";
  EXPECT_THAT(
      Refusal(data.Copy("has_next", "thread_num: 2")),
      HasSubstr("thread_num is 2: the while operator of program.main is a whole training, which one thread runs"));
  EXPECT_THAT(Refusal(data.Copy("has_next", "eval { filelist: \"" + data.file(0) + "\" }")),
              HasSubstr("eval" + why + "and eval would have no readers to read other files with"));
  EXPECT_THAT(Refusal(data.Copy("has_next", "epochs: 2")),
              HasSubstr("the while operator of program.main says how long it trains; leave epochs out"));
  EXPECT_THAT(Refusal(data.Copy("has_next", "", {{"fetch_var_names: \"cost\"", "fetch_var_names: \"batches\""}})),
              HasSubstr("\"batches\" is a reader, which has no value to print; fetch what is read from it"));
  EXPECT_THAT(Refusal(data.Copy("has_next", "", {{"\"batch_size\" type: INT i: 32", "\"batch_size\" type: INT i: 0"}})),
              HasSubstr("has_next_startup.pbtxt: op[1]: create_batch_reader: attribute \"batch_size\" is 0; it is at "
                        "least 1"));
  data.Copy("dataset", "");
  EXPECT_THAT(
      Refusal(data.Copy("has_next", "", {{data.folder() + "/has_next_main", data.folder() + "/step_main"}})),
      HasSubstr("program.main: no operator reads from a reader, and the job has no data_desc and filelist to feed "
                "the program from: give them, or make readers in program.startup and read them"));
}

std::vector<float> SavedTensor(const std::string& path) {
  const std::string bytes = ReadFile(path).value();
  Tensor tensor;
  EXPECT_TRUE(ReadLoDTensor(bytes, path, &tensor).ok());
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

/// Pictures as rows of pixels and their class, and what a softmax classifier reaches on them.
struct PictureSet {
  const char* name;
  const char* file;
  size_t rows;
  size_t pixels;
  /// Whether row i tests; the others train.
  bool (*tests)(size_t i);
  const char* learning_rate;
  int passes;
  double accuracy;  ///< of the README beside the file
};

constexpr PictureSet kPictureSets[] = {
    {"digits", "digits.csv.gz", 1797, 64, [](size_t i) { return i >= 1437; }, "0.01", 30, 0.900},
    // Pixels up to 255 instead of 16, so steps are smaller.
    {"mnist_5k", "mnist_5k.csv.gz", 5000, 784, [](size_t i) { return i % 5 == 4; }, "1e-6", 35, 0.912},
};

/// The rows of a packed file, as text.
std::vector<std::string> UnpackedRows(const std::string& path) {
  std::vector<std::string> rows;
  const std::string unpack = "gzip -dc " + path;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(unpack.c_str(), "r"), pclose);
  char buffer[1 << 16];
  while (std::fgets(buffer, sizeof(buffer), pipe.get()) != nullptr) {
    std::string row = buffer;
    row.pop_back();
    rows.push_back(row);
  }
  return rows;
}

double AccuracyOn(const std::vector<std::string>& rows, const std::vector<float>& w, const std::vector<float>& b) {
  int right = 0;
  for (const std::string& row : rows) {
    std::vector<float> scores = b;
    std::istringstream fields(row);
    std::string field;
    for (size_t i = 0; i < w.size() / b.size(); ++i) {
      std::getline(fields, field, ',');
      for (size_t k = 0; k < b.size(); ++k) scores[k] += std::stof(field) * w[b.size() * i + k];
    }
    std::getline(fields, field, ',');
    right += std::max_element(scores.begin(), scores.end()) - scores.begin() == std::stol(field) ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(rows.size());
}

class Pictures : public testing::TestWithParam<std::tuple<PictureSet, std::string>> {};

TEST_P(Pictures, AreClassifiedAsWellAsTheirReadmeSays) {
  MR_SHARED_OR_SKIP(shared);
  const auto& [set, format] = GetParam();
  if (kIsSanitized && set.rows > 2000) GTEST_SKIP() << "fewer rows show a sanitizer the same, minutes earlier";
  const ReaderJob data(1);
  const std::vector<std::string> rows = UnpackedRows(shared + "/data/digits_iris/" + set.file);
  ASSERT_EQ(rows.size(), set.rows);
  std::vector<std::string> tests;
  {
    std::ofstream halves[] = {std::ofstream(data.file(0)), std::ofstream(data.file(1))};
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(static_cast<size_t>(std::count(rows[i].begin(), rows[i].end(), ',')), set.pixels);
      if (set.tests(i)) tests.push_back(rows[i]);
      if (!set.tests(i)) halves[i % 2] << rows[i] << '\n';
    }
  }
  const std::string pixels = std::to_string(set.pixels);
  std::map<std::string, std::string> replaced = {
      {"dims: 8 dims: 4", "dims: " + pixels + " dims: 10"},
      {"dims: -1 dims: 8", "dims: -1 dims: " + pixels},
      {"dims: -1 dims: 4", "dims: -1 dims: 10"},
      {"{ data_type: FP32 dims: 4 }", "{ data_type: FP32 dims: 10 }"},
      {"longs: 8 longs: 4", "longs: " + pixels + " longs: 10"},
      {"LONGS longs: 4 }", "LONGS longs: 10 }"},
      {"ints: -1 ints: 8", "ints: -1 ints: " + pixels},
      {"FLOAT f: 0.1", std::string("FLOAT f: ") + set.learning_rate},
      {"pass_num\" type: INT i: 3", "pass_num\" type: INT i: " + std::to_string(set.passes)},
      // Shuffled before they are put together.
      {"type: \"create_batch_reader\"\n    inputs { parameter: \"UnderlyingReader\" arguments: \"files\" }",
       "type: \"create_shuffle_reader\"\n    inputs { parameter: \"UnderlyingReader\" arguments: \"files\" }\n    "
       "outputs { "
       "parameter: \"Out\" arguments: \"shuffled\" }\n    attrs { name: \"buffer_size\" type: INT i: 5000 }\n  }\n  "
       "ops {\n "
       "   type: \"create_batch_reader\"\n    inputs { parameter: \"UnderlyingReader\" arguments: \"shuffled\" }"},
      {"vars { name: \"rows\"",
       "vars { name: \"shuffled\" persistable: true type { type: READER } }\n  vars { name: \"rows\""},
  };
  if (format == "recordio") {
    for (int f = 0; f < 2; ++f) {
      const std::string name = "points-" + std::to_string(f);
      Process inspect("inspect", {"records", "--outputs=float32[-1," + pixels + "] int64[-1,1]",
                                  "--records=" + data.folder() + "/" + name + ".recordio", data.file(f)});
      ASSERT_EQ(inspect.Wait(), 0) << inspect.errors();
      replaced[name + ".csv"] = name + ".recordio";
    }
  }
  const std::string saved = data.folder() + "/saved";
  TrainedBy(data.Copy("multi_pass", "", replaced), saved);
  const double accuracy = AccuracyOn(tests, SavedTensor(saved + "/w"), SavedTensor(saved + "/b"));
  RecordProperty("accuracy", std::to_string(accuracy));
  // Another processor rounds otherwise, which moves a picture or two.
  EXPECT_GE(accuracy, set.accuracy - 0.002);
}

INSTANTIATE_TEST_SUITE_P(Readers, Pictures,
                         testing::Combine(testing::ValuesIn(kPictureSets), testing::Values("csv", "recordio")),
                         [](const auto& param_info) {
                           return std::string(std::get<0>(param_info.param).name) + "_" + std::get<1>(param_info.param);
                         });

TEST(WrittenRecords, AreWholeOrNotThere) {
  const ReaderJob data(2000);
  const std::string path = data.folder() + "/all.recordio";
  const std::vector<std::string> command = {"records", "--outputs=float32[-1,8] int64[-1,1]", "--records=" + path,
                                            data.file(0), data.file(1)};
  Process whole("inspect", command);
  ASSERT_EQ(whole.Wait(), 0) << whole.errors();
  EXPECT_THAT(whole.errors(), HasSubstr("4000 records"));
  const auto before = std::filesystem::file_size(path);
  // A disk that is full in the middle: the file of before stays, and nothing beside it.
  Process cut("inspect", command, {.file_size_limit = 100000, .input = "/dev/null"});
  EXPECT_EQ(cut.Wait(), 3);
  EXPECT_THAT(cut.errors(), HasSubstr(path));
  EXPECT_EQ(std::filesystem::file_size(path), before);
  for (const auto& entry : std::filesystem::directory_iterator(data.folder())) {
    EXPECT_THAT(entry.path().filename().string(), testing::AnyOf("all.recordio", testing::EndsWith(".csv")));
  }
}

}  // namespace
}  // namespace millrace
