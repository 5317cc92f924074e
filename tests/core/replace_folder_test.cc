#include "core/replace_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace millrace {
namespace {

using testing::HasSubstr;

class WriteFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/write_folder_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

Status WriteOne(const std::string& folder) {
  std::ofstream(folder + "/MODEL") << "new";
  return Status::Ok();
}

TEST_F(WriteFolderTest, LeavesNothingOfWhatFailed) {
  const auto fail = [](const std::string& folder) {
    std::ofstream(folder + "/half") << "half";
    return IoError("the disk is full");
  };
  EXPECT_EQ(WriteFolder(folder_ + "/model", fail).message(), "the disk is full");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(WriteFolderTest, TakesAFolderWithASlashForTheSameFolder) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(WriteFolder(folder_ + "/model/", WriteOne).ok());
    EXPECT_TRUE(std::filesystem::exists(folder_ + "/model/MODEL"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/model/.writing"));
}

TEST_F(WriteFolderTest, AFolderOfTheUsersBesideItStays) {
  std::filesystem::create_directories(folder_ + "/model.writing");
  std::ofstream(folder_ + "/model.writing/thesis.tex") << "years";
  ASSERT_TRUE(WriteFolder(folder_ + "/model", WriteOne).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/model.writing/thesis.tex"));
}

TEST_F(WriteFolderTest, WhatAKilledProcessLeftIsTakenAway) {
  std::string beside;
  ASSERT_TRUE(WriteFolder(folder_ + "/model", [&beside](const std::string& folder) {
                beside = folder;
                return WriteOne(folder);
              }).ok());
  std::filesystem::create_directories(beside);
  std::ofstream(beside + "/half") << "half";
  ASSERT_TRUE(WriteFolder(folder_ + "/model", WriteOne).ok());
  EXPECT_FALSE(std::filesystem::exists(beside));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/model/half"));
}

TEST_F(WriteFolderTest, AFolderOfOtherFilesIsNotReplaced) {
  EXPECT_TRUE(CheckReplaced(folder_ + "/none", {"MODEL"}).ok());
  EXPECT_TRUE(CheckReplaced(folder_, {"MODEL"}).ok());  // empty
  std::ofstream(folder_ + "/model") << "weights of mine";
  EXPECT_THAT(CheckReplaced(folder_ + "/model", {"MODEL"}).message(), HasSubstr("is a file"));
  std::ofstream(folder_ + "/thesis.tex") << "years";
  EXPECT_THAT(CheckReplaced(folder_, {"MODEL"}).message(), HasSubstr("is there, holds no saved model"));
  std::ofstream(folder_ + "/MODEL") << "a model";
  EXPECT_TRUE(CheckReplaced(folder_, {"MODEL"}).ok());
}

TEST_F(WriteFolderTest, WhatCannotBeLookedAtIsNoFile) {
  const std::string folder = folder_ + "/" + std::string(300, 'x');
  const Status status = CheckReplaced(folder, {"MODEL"});
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_EQ(status.message(), "cannot look at \"" + folder + "\": File name too long");
}

}  // namespace
}  // namespace millrace
