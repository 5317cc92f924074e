#include "report/progress_line.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "core/file.h"
#include "report/save_progress.h"

namespace millrace {
namespace {

RunProgress HalfWay() {
  RunProgress progress;
  progress.epoch = 0;
  progress.epochs = 2;
  progress.pass_examples = 500;
  progress.pass_seconds = 10;
  return progress;
}

TEST(ProgressLineTest, SaysShareRateAndTimeLeft) {
  EXPECT_EQ(ProgressLine::Text(HalfWay(), 1000, false, 200), "epoch 1/2  50%  500 examples  50/s  ETA 0:30");
  EXPECT_EQ(ProgressLine::Text(HalfWay(), 1000, true, 200), "epoch 1/2  ~50%  500 examples  50/s  ETA ~0:30");
  EXPECT_EQ(ProgressLine::Text(HalfWay(), 0, false, 200), "epoch 1/2  500 examples  50/s");
}

TEST(ProgressLineTest, NeverWiderThanTheTerminal) {
  EXPECT_EQ(ProgressLine::Text(HalfWay(), 1000, false, 14), "epoch 1/2  50%");
}

TEST(ProgressLineTest, LongTimesHaveHours) {
  RunProgress slow = HalfWay();
  slow.pass_examples = 1;
  EXPECT_EQ(ProgressLine::Text(slow, 1000, false, 200), "epoch 1/2  0%  1 examples  0/s  ETA 5:33:10");
}

TEST(ProgressLineTest, ElsewhereThanOnATerminalThereAreNoControlCharacters) {
  Result<TempDir> folder = TempDir::Create("progress");
  const std::string path = folder->path() + "/log";
  std::FILE* out = std::fopen(path.c_str(), "w");
  ProgressLine::Options options = ProgressLine::DetectOptions(out);
  EXPECT_FALSE(options.terminal);
  EXPECT_FALSE(options.color);
  options.plain_period_seconds = 0;
  ProgressLine line(options);
  line.Show(HalfWay(), 1000, false);
  line.Clear();
  std::fclose(out);
  EXPECT_EQ(ReadFile(path).value(), "epoch 1/2  50%  500 examples  50/s  ETA 0:30\n");
}

TEST(EstimateLinesTest, FollowsFromSizesAndTheFirstLines) {
  Result<TempDir> folder = TempDir::Create("lines");
  std::vector<std::string> files;
  for (int f = 0; f < 3; ++f) {
    files.push_back(folder->path() + "/" + std::to_string(f));
    std::ofstream out(files.back());
    for (int i = 0; i < 10000; ++i) out << "0123456789\n";
  }
  EXPECT_EQ(EstimateLines(files), 30000);
  std::ofstream(files[0], std::ios::trunc) << "\x1f\x8b"
                                           << "compressed";
  EXPECT_EQ(EstimateLines(files), 0);
  EXPECT_EQ(EstimateLines({folder->path() + "/none"}), 0);
}

TEST(SaveProgressTest, SpeaksOnceSomebodyWaitsForTheSave) {
  const TempDir folder = TempDir::Create("saving").value();
  const std::string path = folder.path() + "/terminal";
  std::FILE* const terminal = std::fopen(path.c_str(), "w");
  std::stop_source stop;
  {
    SaveProgress line("the checkpoint of step 7 is being written", uint64_t{5} << 20, stop.get_token(), terminal);
    line.Add(uint64_t{2} << 20);
    EXPECT_EQ(*ReadFile(path), "");
    stop.request_stop();
    while (ReadFile(path)->empty()) std::this_thread::yield();
  }
  std::fclose(terminal);
  EXPECT_TRUE(ReadFile(path)->starts_with(
      "stopping: the checkpoint of step 7 is being written, 2 of 5 MB; once more to end without it\n"));
}

TEST(SaveProgressTest, SaysNowAndThenHowFarALongSaveOrLoadIsThatNobodyStops) {
  const TempDir folder = TempDir::Create("saving").value();
  const std::string path = folder.path() + "/terminal";
  std::FILE* const terminal = std::fopen(path.c_str(), "w");
  {
    SaveProgress line("a checkpoint is being checked", 0, {}, terminal, std::chrono::milliseconds(1));
    line.Expect(uint64_t{5} << 20);
    line.Add(uint64_t{2} << 20);
    while (ReadFile(path)->find("2 of 5 MB\n") == std::string::npos) std::this_thread::yield();
  }
  std::fclose(terminal);
  EXPECT_TRUE(ReadFile(path)->starts_with("a checkpoint is being checked, "));
}

}  // namespace
}  // namespace millrace
