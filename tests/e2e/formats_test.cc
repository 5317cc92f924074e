// The same rows as MultiSlot text and in every other format train the same models, whatever stops the training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "core/file.h"
#include "datafeed/write_format.h"
#include "e2e/killed_job.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "plugin/test_plugins.h"

namespace millrace {
namespace {

using testing::HasSubstr;

/// "rows" is that of a plugin's loader, "words" that of a plugin's reader.
constexpr const char* kFileFormats[] = {"csv", "tfrecord", "ofrecord", "recordio", "rows", "words"};

class SerialJobOf : public testing::TestWithParam<const char*> {
 protected:
  static std::string Job(const SmallJob& small, const std::string& dataset) {
    return small.DeepJob(
        "update_mode: SERIAL epochs: 2 checkpoint { every_steps: 10 } output { tensorboard: false } "
        "eval { filelist: \"" +
        small.files()[0] + "\" } dataset { " + dataset + " }");
  }
};

TEST_P(SerialJobOf, TrainsTheModelOfTextKilledOrNot) {
  const SmallJob text(1000);
  const SmallJob small(1000, 3, GetParam());
  for (const std::string dataset :
       {"class_name: \"QueueDataset\"", "class_name: \"InMemoryDataset\" local_shuffle: true"}) {
    const std::string expected = text.folder() + "/" + dataset.substr(13, 5);
    TrainToTheEnd(Job(text, dataset), expected);
    const std::string killed = small.folder() + "/" + dataset.substr(13, 5);
    TrainKilled(Job(small, dataset), killed, 3, 20);
    const std::vector<std::string> parameters = ParametersOf(killed + "/model");
    EXPECT_GE(parameters.size(), 3U);
    EXPECT_EQ(parameters, ParametersOf(expected + "/model")) << dataset;
    EXPECT_EQ(ReadFile(killed + "/metrics.jsonl").value(), ReadFile(expected + "/metrics.jsonl").value()) << dataset;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, SerialJobOf, testing::ValuesIn(kFileFormats),
                         [](const auto& param_info) { return std::string(param_info.param); });

class HogwildJobOf : public testing::TestWithParam<const char*> {};

TEST_P(HogwildJobOf, TrainsEveryRecordOnceKilledOrNot) {
  for (const std::string dataset :
       {"class_name: \"QueueDataset\"", "class_name: \"InMemoryDataset\" local_shuffle: true"}) {
    const SmallJob small(1200, 2, GetParam());
    const std::string job = small.CountingJob(
        "thread_num: 2 checkpoint { every_steps: 100 } output { tensorboard: false } eval { filelist: "
        "\"" +
        small.files()[1] + "\" } dataset { " + dataset + " }");
    const std::string out = small.folder() + "/out";
    TrainKilled(job, out, 4, 12);
    EXPECT_THAT(ReadFile(out + "/run.json").value(), HasSubstr("\"eval")) << dataset;
    // The model reads the format that it was trained on.
    std::vector<std::string> plugin;
    for (const std::string of_plugin : {"rows", "words"}) {
      if (GetParam() == of_plugin) plugin = {"--plugin=" + TestPlugin(of_plugin)};
    }
    const std::vector<std::string> scores = ScoresOf(out, small.files(), plugin);
    EXPECT_EQ(static_cast<int>(scores.size()), small.lines()) << dataset;
    EXPECT_EQ(std::count(scores.begin(), scores.end(), "0.5"), small.lines()) << dataset;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, HogwildJobOf, testing::ValuesIn(kFileFormats),
                         [](const auto& param_info) { return std::string(param_info.param); });

TEST(LibsvmJobTest, TrainsTheModelOfText) {
  const TempDir folder = TempDir::Create("libsvm_job").value();
  std::vector<std::string> rows;
  std::string text;
  for (int i = 0; i < 500; ++i) {
    const std::string label = std::to_string(i % 3 == 0 ? 1 : 0);
    const std::string a = std::to_string(i % 3 + 1);
    const std::string b = std::to_string(i % 50 + 4);
    rows.push_back("label=" + label + ". ids=" + a + "," + b + " values=0.5,1.5");
    text += "1 " + label + " 2 " + a + " " + b + " 2 0.5 1.5\n";
  }
  WriteFormat(folder.path() + "/libsvm", "libsvm", rows);
  std::ofstream(folder.path() + "/text") << text;
  for (const std::string name : {"text", "libsvm"}) {
    std::ofstream(folder.path() + "/" + name + ".prototxt")
        << "filelist: \"" << folder.path() << "/" << name << "\" data_desc { "
        << (name == "text" ? "" : "name: \"libsvm\" ") << R"(batch_size: 16 multi_slot_desc {
  slots { name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }
  slots { name: "ids" type: "uint64" is_used: true }
  slots { name: "values" type: "float" }
} }
update_mode: SERIAL
dataset { class_name: "InMemoryDataset" local_shuffle: true }
model {
  table { name: "t" dim: 4 init { uniform: 0.1 } optimizer { adagrad { lr: 0.5 } } }
  layer { name: "e" embedding { slots: ["ids"] table: "t" pool: SUM } }
  layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  metric { kind: AUC }
  optimizer { adam { lr: 0.1 } }
})";
    TrainToTheEnd(folder.path() + "/" + name + ".prototxt", folder.path() + "/" + name + ".out");
  }
  const std::vector<std::string> parameters = ParametersOf(folder.path() + "/libsvm.out/model");
  EXPECT_GE(parameters.size(), 2U);
  EXPECT_EQ(parameters, ParametersOf(folder.path() + "/text.out/model"));
}

}  // namespace
}  // namespace millrace
