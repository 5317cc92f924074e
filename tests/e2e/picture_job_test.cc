// Pictures feed datasets as text does: the same model, whatever stops the training, and each picture once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/file.h"
#include "e2e/killed_job.h"
#include "e2e/process.h"
#include "reader/jpeg_picture.h"

namespace millrace {
namespace {

using testing::HasSubstr;

constexpr int kSide = 4;

/// Batches of one row: a row of the table is 0 before, half of its id after its picture was trained once, and three
/// quarters after twice.
constexpr const char* kCountingModel = R"(
model {
  table { name: "t" dim: 1 init { constant: 0 } optimizer { sgd { lr: 0.25 } } initial_rows: 64 }
  layer { name: "e" embedding { slots: "uid" table: "t" pool: SUM } }
  loss { kind: SQUARED_ERROR in: "e" label: "uid" }
  optimizer { sgd { lr: 0.25 } }
}
fetch_config { fetch_var_names: "loss" print_period: 25 }
)";

/// A folder of pictures in folders of their classes, and the same rows as MultiSlot text.
class PictureJob : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasJpeg()) GTEST_SKIP() << "built without libjpeg";
    folder_.emplace(TempDir::Create("pictures").value());
  }
  const std::string& folder() const { return folder_->path(); }

  /// Writes `count` grey pictures of `side` pixels a side for a class.
  void WriteClass(const std::string& name, int label, int side, int count) {
    const std::string of_class = folder() + "/images/" + name;
    std::filesystem::create_directories(of_class);
    std::ofstream text(folder() + "/text", std::ios::app);
    for (int i = 0; i < count; ++i) {
      const std::string picture = JpegPicture(
          side, side, 1, [&](int x, int y, int) { return side == 1 ? 1 : (x * 5 + y * 31 + i * label) % 256; });
      std::ofstream(of_class + "/" + std::to_string(1000 + i) + ".jpg", std::ios::binary) << picture;
      text << side * side;
      for (const uint8_t value : PixelsByLibjpeg(picture, 1)) text << " " << static_cast<int>(value);
      text << " 1 " << label << "\n";
    }
  }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder() + "/" + name) << text;
    return folder() + "/" + name;
  }

 private:
  std::optional<TempDir> folder_;
};

TEST_F(PictureJob, TrainTheModelOfTextKilledOrNot) {
  WriteClass("cat", 0, kSide, 150);
  WriteClass("dog", 1, kSide, 150);
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    const auto job = [&](const std::string& format) {
      const std::string files = format == "jpeg" ? "jpeg:" + folder() + "/images" : folder() + "/text";
      return Write(
          dataset + format + ".prototxt", "filelist: \"" + files + "\" eval { filelist: \"" + files + "\" }" +
                                              (format == "jpeg" ? " data_desc { name: \"jpeg\" " : " data_desc { ") +
                                              R"(batch_size: 16 multi_slot_desc {
  slots { name: "picture" type: "float" is_used: true is_dense: true shape: [-1, 1, 4, 4] }
  slots { name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }
} }
update_mode: SERIAL epochs: 2 checkpoint { every_steps: 5 } output { tensorboard: false }
model {
  layer { name: "h" fc { in: "picture" units: 4 act: TANH } }
  layer { name: "y" fc { in: "h" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  metric { kind: AUC }
  optimizer { adam { lr: 0.01 } }
}
fetch_config { fetch_var_names: "loss" print_period: 3 }
dataset { )" + "class_name: \"" + dataset + (dataset == "InMemoryDataset" ? "\" local_shuffle: true }" : "\" }"));
    };
    const std::string expected = folder() + "/" + dataset + "_text";
    TrainToTheEnd(job("text"), expected);
    const std::string killed = folder() + "/" + dataset + "_jpeg";
    TrainKilled(job("jpeg"), killed, 3, 12);
    EXPECT_GE(ParametersOf(killed + "/model").size(), 3U);
    EXPECT_EQ(ParametersOf(killed + "/model"), ParametersOf(expected + "/model")) << dataset;
    EXPECT_EQ(ReadFile(killed + "/metrics.jsonl").value(), ReadFile(expected + "/metrics.jsonl").value()) << dataset;
  }
}

TEST_F(PictureJob, AreTrainedOnceByHogwildWorkersKilledOrNot) {
  constexpr int kPictures = 600;
  for (int label = 1; label <= kPictures; ++label) WriteClass(std::to_string(label), label, 1, 1);
  for (const std::string dataset :
       {"class_name: \"QueueDataset\"", "class_name: \"InMemoryDataset\" local_shuffle: true"}) {
    const std::string images = "jpeg:" + folder() + "/images";
    const std::string job =
        Write("counting.prototxt", "filelist: \"" + images + R"("
data_desc { name: "jpeg" batch_size: 1 multi_slot_desc {
  slots { name: "picture" type: "float" is_used: true is_dense: true shape: [-1, 1, 1, 1] }
  slots { name: "uid" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
} }
)" + std::string(kCountingModel) +
                                       "thread_num: 2 checkpoint { every_steps: 50 } output { tensorboard: false } "
                                       "eval { filelist: \"" +
                                       images + "\" } dataset { " + dataset + " }");
    const std::string out = folder() + "/" + dataset.substr(13, 5);
    TrainKilled(job, out, 4, 8);
    EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"eval")) << dataset;
    std::vector<double> scores;
    for (const std::string& score : ScoresOf(out, {images})) scores.push_back(std::stod(score));
    std::sort(scores.begin(), scores.end());
    ASSERT_EQ(scores.size(), static_cast<size_t>(kPictures)) << dataset;
    for (int i = 0; i < kPictures; ++i) EXPECT_EQ(scores[static_cast<size_t>(i)], 0.5 * (i + 1)) << dataset;
  }
}

}  // namespace
}  // namespace millrace
