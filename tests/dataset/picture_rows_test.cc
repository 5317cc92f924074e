// Pictures as rows of datasets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/file.h"
#include "dataset/dataset_factory.h"
#include "dataset/in_memory_dataset.h"
#include "reader/jpeg_picture.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class PictureRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.emplace(TempDir::Create("pictures").value());
    desc_.set_name("jpeg");
    desc_.set_batch_size(4);
    AddSlot("picture", "float", {-1, 1, 2, 2});
    AddSlot("label", "uint64", {-1, 1});
    images_ = dir_->path() + "/images";
  }
  void AddSlot(const std::string& name, const std::string& type, const std::vector<int>& shape) {
    Slot* const slot = desc_.mutable_multi_slot_desc()->add_slots();
    slot->set_name(name);
    slot->set_type(type);
    slot->set_is_used(true);
    slot->set_is_dense(true);
    for (const int size : shape) slot->add_shape(size);
  }
  void Write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = std::filesystem::path(images_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static std::string Grey(int value, int side = 2) {
    return JpegPicture(side, side, 1, [value](int, int, int) { return value; });
  }

  Result<std::unique_ptr<Dataset>> Make(const std::vector<std::string>& files, const std::string& dataset,
                                        int threads = 1) const {
    DatasetSettings settings;
    settings.threads = threads;
    return DatasetFactory::Builtin().Create(dataset, desc_, files, DataFeedFactory::Builtin(), settings);
  }

  /// "LABEL:VALUE" of each row, sorted, or the failure behind them.
  std::string Rows(const std::vector<std::string>& files, const std::string& dataset = "QueueDataset",
                   int threads = 1) {
    Result<std::unique_ptr<Dataset>> made = Make(files, dataset, threads);
    if (!made.ok()) return made.status().message();
    if (auto* const in_memory = dynamic_cast<InMemoryDataset*>(made->get()); in_memory != nullptr) {
      const Result<PassStats> loaded = in_memory->LoadIntoMemory({});
      if (!loaded.ok()) return loaded.status().message();
      stats_ = *loaded;
    }
    EXPECT_TRUE((*made)->BeginPass({.workers = 1}).ok());
    std::vector<std::string> rows;
    for (;;) {
      const Result<BatchPtr> batch = (*made)->source(0).Next({});
      if (!batch.ok()) return batch.status().message();
      if (*batch == nullptr) break;
      for (int row = 0; row < (*batch)->rows(); ++row) {
        const std::span<const float> values = (*batch)->floats(0).subspan(static_cast<size_t>(row) * 4, 4);
        EXPECT_EQ(std::count(values.begin(), values.end(), values[0]), 4);
        rows.push_back(std::to_string((*batch)->ids(1)[static_cast<size_t>(row)]) + ":" +
                       std::to_string(static_cast<int>(values[0])));
      }
    }
    const Result<PassStats> stats = (*made)->EndPass();
    if (dataset == "QueueDataset") stats_ = stats.value();
    std::sort(rows.begin(), rows.end());
    std::string text;
    for (const std::string& row : rows) text += row + " ";
    return text;
  }

  std::optional<TempDir> dir_;
  std::string images_;
  DataFeedDesc desc_;
  PassStats stats_;
};

class WithJpeg : public PictureRowsTest {
 protected:
  void SetUp() override {
    if (!HasJpeg()) GTEST_SKIP() << "built without libjpeg";
    PictureRowsTest::SetUp();
  }
};

TEST_F(WithJpeg, AFolderOfClassesFeedsBothDatasets) {
  Write("cat/a.jpg", Grey(10));
  Write("cat/b.jpg", Grey(20));
  Write("dog/a.jpg", Grey(30));
  Write("dog/.hidden", "");
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    for (const int threads : {1, 3}) {
      EXPECT_EQ(Rows({"jpeg:" + images_}, dataset, threads), "0:10 0:20 1:30 ");
      EXPECT_EQ(stats_.files, 1);
      EXPECT_EQ(stats_.lines, 3);
      EXPECT_EQ(stats_.bytes, static_cast<int64_t>(Grey(10).size() + Grey(20).size() + Grey(30).size()));
    }
  }
}

TEST_F(WithJpeg, FilesHaveTheNumbersOfTheirFoldersAsLabels) {
  Write("7/a.jpg", Grey(10));
  Write("12/b.jpg", Grey(20));
  EXPECT_EQ(Rows({images_ + "/7/a.jpg", images_ + "/12/b.jpg"}), "12:20 7:10 ");
  desc_.mutable_multi_slot_desc()->mutable_slots(1)->set_type("float");
  EXPECT_TRUE(Make({images_ + "/7"}, "QueueDataset").ok());
}

TEST_F(WithJpeg, ABrokenPictureIsABadLineWithItsFile) {
  const std::string whole = Grey(30);
  Write("1/a.jpg", Grey(10));
  Write("1/b.jpg", "no picture");
  Write("1/c.jpg", whole.substr(0, whole.size() - 40));
  Write("1/d.jpg", Grey(40, 3));
  Write("1/e.jpg", "");
  Write("1/f.jpg", Grey(50));
  const std::string folder = images_ + "/1";
  EXPECT_THAT(Rows({folder}), HasSubstr(folder + ": record 2: " + folder + "/b.jpg: no JPEG picture: "));
  desc_.mutable_bad_lines()->set_action(BadLinePolicy::SKIP);
  desc_.mutable_bad_lines()->set_max_fraction(1);
  for (const std::string dataset : {"QueueDataset", "InMemoryDataset"}) {
    EXPECT_EQ(Rows({folder}, dataset), "1:10 1:50 ");
    EXPECT_EQ(stats_.bad_lines, 4);
    EXPECT_EQ(stats_.counters["damaged"], 3);
    EXPECT_EQ(stats_.counters["wrong_width"], 1);
    EXPECT_THAT(
        stats_.first_bad_lines,
        ::testing::Contains(HasSubstr("/d.jpg: the picture is 3 high and 3 wide; the slot takes [-1, 1, 2, 2]")));
  }
}

TEST_F(WithJpeg, AFileThatIsNoPictureAtAllIsNotReadToItsEnd) {
  desc_.set_max_line_bytes(1 << 20);
  Write("1/a.jpg", Grey(10));
  Write("1/b.jpg", std::string(3 << 20, 'x'));
  EXPECT_THAT(Rows({images_ + "/1"}), HasSubstr("b.jpg: the file has more bytes than data_desc.max_line_bytes"));
}

TEST_F(WithJpeg, AFolderThatIsNoneIsNamed) {
  EXPECT_EQ(Rows({"jpeg:" + images_}), "no such file or folder: \"" + images_ + "\"");
  std::filesystem::create_directories(images_);
  EXPECT_THAT(Rows({images_}), HasSubstr("there are no pictures in the folder \"" + images_ + "\""));
  Write("named/a.jpg", Grey(10));
  EXPECT_THAT(Rows({images_ + "/named"}), HasSubstr("have no label"));
}

TEST_F(WithJpeg, WhatPicturesCannotFollowIsRefusedByName) {
  Write("1/a.jpg", Grey(10));
  desc_.set_pipe_command("tar -xO");
  EXPECT_EQ(Rows({images_ + "/1"}),
            "data_desc.pipe_command: a file of the format \"jpeg\" is opened by its path, so that no command can stand "
            "before it");
  desc_.clear_pipe_command();
  EXPECT_THAT(Rows({"hdfs:/images"}), HasSubstr("\"hdfs:/images\" is to be read by a command, and the format \"jpeg\" "
                                                "opens its files itself"));
  AddSlot("more", "float", {-1, 1});
  EXPECT_EQ(Rows({images_ + "/1"}),
            "slot \"more\": the slots of jpeg are the picture and its label, one value, or the picture alone");
  desc_.mutable_multi_slot_desc()->mutable_slots(0)->set_shape(1, 2);
  EXPECT_THAT(Rows({images_ + "/1"}), HasSubstr("slot \"picture\": the first slot of jpeg is the picture"));
}

TEST_F(PictureRowsTest, WithoutJpegThatIsSaid) {
  if (HasJpeg()) GTEST_SKIP() << "built with libjpeg";
  Write("1/a.jpg", "");
  EXPECT_THAT(Rows({images_}), HasSubstr("data_desc.name: \"jpeg\": this Millrace was built without JPEG"));
}

}  // namespace
}  // namespace millrace
