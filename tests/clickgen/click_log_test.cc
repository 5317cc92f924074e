#include "clickgen/click_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "clickgen/part_files.h"

namespace millrace {
namespace {

using testing::HasSubstr;

class ClickLog : public testing::Test {
 protected:
  ClickLog() {
    std::string pattern = testing::TempDir() + "clickgenXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ClickLog() override { std::filesystem::remove_all(folder_); }

  // All files below a folder with their bytes.
  static std::map<std::string, std::string> Files(const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ostringstream bytes;
      bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      files[entry.path().lexically_relative(folder)] = bytes.str();
    }
    return files;
  }

  std::string folder_;
};

ClickLogOptions SmallLog() {
  ClickLogOptions options;
  options.train_rows = 20001;
  options.test_rows = 5000;
  options.parts = 3;
  options.dense = 2;
  options.slots = 5;
  options.many_valued = 1;
  options.fm_slots = 2;
  options.vocabulary = 100;
  return options;
}

TEST_F(ClickLog, BytesDoNotDependOnThreads) {
  for (bool gzip : {false, true}) {
    ClickLogOptions options = SmallLog();
    options.gzip = gzip;
    ASSERT_TRUE(WriteClickLog(options, folder_).ok());
    const auto one = Files(folder_);
    options.threads = 4;
    ASSERT_TRUE(WriteClickLog(options, folder_).ok());
    EXPECT_EQ(one, Files(folder_));
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(ClickLog, BytesAreThoseOfEarlierVersions) {
  ClickLogOptions options;
  options.train_rows = 3000;
  options.test_rows = 500;
  ClickLogOptions other = options;
  other.format = ClickLogOptions::Format::kRaw;
  other.ids = ClickLogOptions::Ids::kHash64;
  other.seed = 7;
  other.vocabulary = 3000000000;
  other.zipf = 1.3;
  other.missing = 0.1;
  const auto crc = [](const std::string& bytes) {
    return crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  };
  ASSERT_TRUE(WriteClickLog(options, folder_).ok());
  EXPECT_EQ(crc(Files(folder_)["train/part-00000"]), 0xcd02f19b);
  EXPECT_EQ(crc(Files(folder_)["test/part-00000"]), 0x304ae42d);
  ASSERT_TRUE(WriteClickLog(other, folder_).ok());
  EXPECT_EQ(crc(Files(folder_)["train/part-00000"]), 0x98d41775);
  EXPECT_EQ(crc(Files(folder_)["test/part-00000"]), 0xe487d791);
}

TEST_F(ClickLog, PartsHoldEveryRowOnceInOrder) {
  ClickLogOptions options = SmallLog();
  ASSERT_TRUE(WriteClickLog(options, folder_).ok());
  auto parts = Files(folder_);
  const std::string all = parts["train/part-00000"] + parts["train/part-00001"] + parts["train/part-00002"];
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 20001);
  const std::string& last = parts["train/part-00002"];
  EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), 6667);
  options.parts = 1;
  std::filesystem::remove_all(folder_);
  ASSERT_TRUE(WriteClickLog(options, folder_).ok());
  EXPECT_EQ(all, Files(folder_)["train/part-00000"]);
}

TEST_F(ClickLog, MorePartsThanRows) {
  ClickLogOptions options = SmallLog();
  options.train_rows = 3;
  options.test_rows = 0;
  options.parts = 5;
  const auto splits = WriteClickLog(options, folder_);
  ASSERT_TRUE(splits.ok());
  EXPECT_EQ(splits.value()[0].rows, 3);
  EXPECT_EQ(splits.value()[0].files.size(), 5u);
}

TEST_F(ClickLog, GzipHoldsTheSameText) {
  ClickLogOptions options = SmallLog();
  options.parts = 1;
  ASSERT_TRUE(WriteClickLog(options, folder_ + "/plain").ok());
  options.gzip = true;
  ASSERT_TRUE(WriteClickLog(options, folder_ + "/packed").ok());
  gzFile file = gzopen((folder_ + "/packed/train/part-00000.gz").c_str(), "rb");
  std::string text;
  std::string buffer(65536, '\0');
  for (int n = gzread(file, buffer.data(), 65536); n > 0; n = gzread(file, buffer.data(), 65536)) {
    text.append(buffer, 0, static_cast<size_t>(n));
  }
  gzclose(file);
  EXPECT_EQ(text, Files(folder_ + "/plain")["train/part-00000"]);
}

TEST_F(ClickLog, SaysWhatCanBeReached) {
  ClickLogOptions options = SmallLog();
  const auto splits = WriteClickLog(options, folder_);
  ASSERT_TRUE(splits.ok());
  ASSERT_EQ(splits.value().size(), 2u);
  EXPECT_EQ(splits.value()[1].name, "test");
  EXPECT_GT(splits.value()[1].attainable_auc, 0.55);
  EXPECT_THAT(Files(folder_)["meta.json"], HasSubstr("\"attainable_auc\": 0."));
  options.signal = 0;
  const auto noise = WriteClickLog(options, folder_);
  ASSERT_TRUE(noise.ok());
  EXPECT_EQ(noise.value()[1].attainable_auc, 0.5) << "all probabilities are equal";
}

TEST_F(ClickLog, TheSlotsFitTheLines) {
  ASSERT_TRUE(WriteClickLog(SmallLog(), folder_).ok());
  const std::string slots = Files(folder_)["data_feed.prototxt"];
  EXPECT_THAT(slots, HasSubstr("name: \"dense\" type: \"float\" is_used: true is_dense: true shape: -1 shape: 2"));
  EXPECT_THAT(slots, HasSubstr("name: \"C1..C5\""));
}

TEST_F(ClickLog, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder_ + "/file") << "x";
  const auto splits = WriteClickLog(SmallLog(), folder_ + "/file");
  ASSERT_FALSE(splits.ok());
  EXPECT_EQ(splits.status().code(), StatusCode::kIo);
  EXPECT_THAT(splits.status().message(), HasSubstr(folder_ + "/file/train"));
}

TEST_F(ClickLog, AFullDiskIsAnError) {
  std::filesystem::create_symlink("/dev/full", folder_ + "/part-00000");
  PartFiles files(folder_, "");
  Status status = files.Append(0, std::string(1 << 20, 'x'));
  if (status.ok()) status = files.Close();
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(status.message(), HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace millrace
