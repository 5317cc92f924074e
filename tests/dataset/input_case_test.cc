// Runs tests/cases/input/*.case: what datasets make of files, commands and packed files, with exact batches and
// exact messages.

#include "dataset/input_case.h"

#include <glog/logging.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/feature_slots.h"
#include "core/file.h"
#include "datafeed/batch_text.h"
#include "datafeed/write_format.h"
#include "dataset/dataset_factory.h"
#include "dataset/pack.h"
#include "paths.h"
#include "process_tree.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using testing::InputCase;

std::string Replace(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

/// "a=1 b=2 | a=3 b=4" as its rows.
std::vector<std::string> RowsOf(const std::string& text) {
  std::vector<std::string> rows;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(" | ", start), text.size());
    rows.push_back(text.substr(start, end - start));
    start = end + 3;
  }
  return rows;
}

std::string ShownBatch(const SlotBatch& batch) {
  std::string text;
  for (int row = 0; row < batch.rows(); ++row) text += (row == 0 ? "" : " | ") + testing::RowText(batch, row);
  return text;
}

/// What became of a case.
struct Outcome {
  std::vector<std::string> batches;
  int64_t rows = 0;
  Status status;
  PassStats stats;
};

class CaseRun {
 public:
  CaseRun(const InputCase& test, std::string dir) : test_(&test), dir_(std::move(dir)) {
    for (const InputCase::File& file : test.files) Make(file);
  }

  Outcome Run() {
    DataFeedDesc desc = testing::DescOf(test_->slots);
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(Here(test_->desc), &desc)) << test_->desc;
    FillFeatureSlots(&desc);
    if (test_->has_pipe) desc.set_pipe_command(Here(test_->pipe));
    std::vector<std::string> files = made_;
    if (test_->has_list) {
      files.clear();
      for (const std::string& name : test_->list) {
        const bool is_path = name.empty() || name.find(':') != std::string::npos;
        files.push_back(is_path ? Here(name) : dir_ + "/" + name);
      }
    }
    Outcome outcome;
    TrainerDesc job;
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(test_->dataset, job.mutable_dataset())) << test_->dataset;
    DatasetSettings settings = DatasetSettings::FromDesc(job);
    settings.threads = test_->threads;
    settings.output_dir = dir_;
    auto dataset =
        DatasetFactory::Builtin().Create(test_->class_name, desc, files, DataFeedFactory::Builtin(), settings);
    if (!dataset.ok()) {
      outcome.status = dataset.status();
      return outcome;
    }
    PassOptions pass;
    pass.workers = test_->workers;
    pass.ordered = test_->ordered;
    if (auto* memory = dynamic_cast<InMemoryControl*>(dataset->get())) {
      Result<PassStats> load = memory->LoadIntoMemory({});
      if (!load.ok()) {
        outcome.status = load.status();
        return outcome;
      }
      outcome.stats = *load;
    }
    outcome.status = (*dataset)->BeginPass(pass);
    const bool has_begun = outcome.status.ok();
    while (outcome.status.ok()) {
      Result<BatchPtr> batch = (*dataset)->source(0).Next({});
      if (!batch.ok()) {
        outcome.status = batch.status();
      } else if (*batch == nullptr) {
        break;
      } else {
        outcome.rows += (*batch)->rows();
        outcome.batches.push_back(ShownBatch(**batch));
      }
    }
    if (!has_begun) return outcome;
    PassStats stats = (*dataset)->EndPass().value();
    // What a load met is told by the load.
    if (test_->class_name != "InMemoryDataset") outcome.stats = std::move(stats);
    return outcome;
  }

  std::string Here(const std::string& text) const { return Replace(text, "DIR", dir_); }

 private:
  void Make(const InputCase::File& file) {
    const std::string path = dir_ + "/" + file.name;
    if (file.kind == "folder") {
      fs::create_directories(path);
    } else if (file.kind == "cut") {
      fs::resize_file(path, fs::file_size(path) - std::stoul(file.text));
      return;
    } else if (file.kind == "flip") {
      std::string bytes = ReadFile(path).value();
      bytes.at(std::stoul(file.text)) ^= 1;
      std::ofstream(path, std::ios::binary) << bytes;
      return;
    } else if (file.kind == "pack") {
      const std::string bytes = testing::Gzip(ReadFile(path).value());
      std::ofstream(path, std::ios::binary) << bytes;
      return;
    } else if (file.kind == "csv" || file.kind == "tfrecord" || file.kind == "ofrecord" || file.kind == "recordio") {
      WriteFormat(path, file.kind, RowsOf(file.text));
    } else {
      std::string bytes = Here(file.text);
      if (file.kind == "gz") bytes = testing::Gzip(bytes);
      if (file.kind == "zst") bytes = testing::Zstd(bytes);
      std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
    }
    if (made_.empty() || made_.back() != path) made_.push_back(path);
  }

  const InputCase* test_;
  std::string dir_;
  std::vector<std::string> made_;
};

void CheckCase(const InputCase& test) {
  SCOPED_TRACE(test.where + ": " + test.name);
  const TempDir dir = TempDir::Create("millrace_case_").value();
  CaseRun run(test, dir.path());
  ::testing::internal::CaptureStderr();  // what commands say is part of the messages as well
  const Outcome outcome = run.Run();
  ::testing::internal::GetCapturedStderr();
  if (test.rows >= 0) {
    EXPECT_EQ(outcome.rows, test.rows);
  } else {
    EXPECT_EQ(outcome.batches, test.batches);
  }
  const std::string expected = test.error.empty() ? "ok" : run.Here(test.error);
  EXPECT_EQ(outcome.status.ToString(), expected);
  for (const auto& [name, count] : test.counts) {
    const auto found = outcome.stats.counters.find(name);
    EXPECT_EQ(found == outcome.stats.counters.end() ? 0 : found->second, count) << name;
  }
  const std::map<std::string, int64_t> numbers = {{"files", outcome.stats.files},
                                                  {"lines", outcome.stats.lines},
                                                  {"bad_lines", outcome.stats.bad_lines},
                                                  {"bytes", outcome.stats.bytes}};
  for (const auto& [name, number] : test.numbers) EXPECT_EQ(numbers.at(name), number) << name;
  for (const std::string& name : test.absent) EXPECT_FALSE(fs::exists(dir.path() + "/" + name)) << name;
  for (const InputCase::File& file : test.contents) {
    EXPECT_EQ(ReadFile(dir.path() + "/" + file.name).value(), run.Here(file.text)) << file.name;
  }
  EXPECT_EQ(CountChildren(), 0);
}

class InputCases : public ::testing::TestWithParam<std::string> {};

TEST_P(InputCases, EveryPassIsAsItShould) {
  const std::vector<InputCase> cases = testing::ReadInputCases(GetParam());
  ASSERT_FALSE(cases.empty());
  for (const InputCase& test : cases) CheckCase(test);
}

std::vector<std::string> CaseFiles() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(SourceDir() + "/tests/cases/input")) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, InputCases, ::testing::ValuesIn(CaseFiles()),
                         [](const auto& file) { return fs::path(file.param).stem().string(); });

}  // namespace
}  // namespace millrace
