#include "core/replace_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/file.h"

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

constexpr SavedFolder kModel = {"a saved model", [](const std::string&) -> std::set<std::string> {
                                  return {"MODEL", "tables/deep"};
                                }};

Status WriteOne(const std::string& folder) {
  std::ofstream(folder + "/MODEL") << "new";
  return Status::Ok();
}

TEST_F(WriteFolderTest, LeavesNothingOfWhatFailed) {
  const auto fail = [](const std::string& folder) {
    std::ofstream(folder + "/half") << "half";
    return IoError("the disk is full");
  };
  EXPECT_EQ(WriteFolder(folder_ + "/model", kModel, fail).message(), "the disk is full");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(WriteFolderTest, TakesAFolderWithASlashForTheSameFolder) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(WriteFolder(folder_ + "/model/", kModel, WriteOne).ok());
    EXPECT_TRUE(std::filesystem::exists(folder_ + "/model/MODEL"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/model/.writing"));
}

TEST_F(WriteFolderTest, AFolderOfTheUsersBesideItStays) {
  std::filesystem::create_directories(folder_ + "/model.writing");
  std::ofstream(folder_ + "/model.writing/thesis.tex") << "years";
  ASSERT_TRUE(WriteFolder(folder_ + "/model", kModel, WriteOne).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/model.writing/thesis.tex"));
}

TEST_F(WriteFolderTest, WhatAKilledProcessLeftIsTakenAway) {
  std::string beside;
  ASSERT_TRUE(WriteFolder(folder_ + "/model", kModel, [&beside](const std::string& folder) {
                beside = folder;
                return WriteOne(folder);
              }).ok());
  std::filesystem::create_directories(beside);
  std::ofstream(beside + "/half") << "half";
  ASSERT_TRUE(WriteFolder(folder_ + "/model", kModel, WriteOne).ok());
  EXPECT_FALSE(std::filesystem::exists(beside));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/model/half"));
}

// It was ".millrace-writing" that could not be renamed to "".
TEST_F(WriteFolderTest, AFolderWithoutANameIsRefused) {
  for (const Status& refused : {WriteFolder("", kModel, WriteOne), CheckReplaced("", kModel), MakeFolder("")}) {
    EXPECT_EQ(refused.code(), StatusCode::kInvalidConfig);
    EXPECT_EQ(refused.message(), "no folder is named");
  }
  EXPECT_FALSE(std::filesystem::exists(kUnfinishedSuffix));
}

TEST_F(WriteFolderTest, AFolderOfOtherFilesIsNotReplaced) {
  EXPECT_TRUE(CheckReplaced(folder_ + "/none", kModel).ok());
  EXPECT_TRUE(CheckReplaced(folder_, kModel).ok());  // empty
  std::ofstream(folder_ + "/model") << "weights of mine";
  EXPECT_THAT(CheckReplaced(folder_ + "/model", kModel).message(), HasSubstr("is a file"));
  std::ofstream(folder_ + "/thesis.tex") << "years";
  EXPECT_THAT(CheckReplaced(folder_, kModel).message(),
              HasSubstr("contains files that are not part of a saved model (\"model\", \"thesis.tex\")"));
  EXPECT_EQ(ReadFile(folder_ + "/thesis.tex").value(), "years");
}

TEST_F(WriteFolderTest, AFolderIsReplacedWhenAllItsFilesAreOfAModel) {
  const std::string model = folder_ + "/model";
  std::filesystem::create_directories(model + "/tables");
  std::ofstream(model + "/MODEL") << "old";
  std::ofstream(model + "/tables/deep") << "old";
  ASSERT_TRUE(WriteFolder(model, kModel, WriteOne).ok());
  EXPECT_FALSE(std::filesystem::exists(model + "/tables"));
}

TEST_F(WriteFolderTest, AFileBesideAModelKeepsItsFolder) {
  const std::string model = folder_ + "/model";
  for (const char* mine : {"notes.txt", "tables/mine", ".git/config", "empty/"}) {
    std::filesystem::create_directories(std::filesystem::path(model + "/" + mine).parent_path());
    std::ofstream(model + "/MODEL") << "old";
    if (!std::string(mine).ends_with('/')) std::ofstream(model + "/" + mine) << "years";
    const Status refused = WriteFolder(model, kModel, WriteOne);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidConfig) << mine;
    EXPECT_THAT(refused.message(), HasSubstr("contains files that are not part of a saved model (\"")) << mine;
    EXPECT_EQ(ReadFile(model + "/MODEL").value(), "old");
    EXPECT_FALSE(std::filesystem::exists(model + std::string(kUnfinishedSuffix)));
    std::filesystem::remove_all(model);
  }
}

TEST_F(WriteFolderTest, AFolderBelowALinkIsNoPartOfTheModel) {
  const std::string model = folder_ + "/model";
  std::filesystem::create_directories(folder_ + "/mine");
  std::filesystem::create_directories(model);
  std::ofstream(folder_ + "/mine/deep") << "years";
  std::filesystem::create_directory_symlink(folder_ + "/mine", model + "/tables");
  EXPECT_THAT(WriteFolder(model, kModel, WriteOne).message(), HasSubstr("(\"tables\")"));
  EXPECT_EQ(ReadFile(folder_ + "/mine/deep").value(), "years");
}

TEST_F(WriteFolderTest, AFileThatCameWhileTheNewFolderWasWrittenStays) {
  const std::string model = folder_ + "/model";
  ASSERT_TRUE(WriteFolder(model, kModel, WriteOne).ok());
  const Status late = WriteFolder(model, kModel, [&model](const std::string& folder) {
    std::ofstream(model + "/notes.txt") << "mine";
    return WriteOne(folder);
  });
  EXPECT_THAT(late.message(), HasSubstr("contains files that are not part of a saved model (\"notes.txt\")"));
  EXPECT_EQ(ReadFile(model + "/notes.txt").value(), "mine");
}

TEST_F(WriteFolderTest, TheReasonOfARenameThatFailedIsReported) {
  std::filesystem::create_directories(folder_ + "/from");
  // Neither of these is "No such file or directory", which an exchange with a folder that is not there would say.
  EXPECT_THAT(ReplaceFolder(folder_ + "/from", folder_ + "/from/inner").message(), HasSubstr("Invalid argument"));
  EXPECT_THAT(ReplaceFolder(folder_ + "/from", folder_ + "/" + std::string(300, 'x')).message(),
              HasSubstr("File name too long"));
}

TEST_F(WriteFolderTest, WhatCannotBeLookedAtIsNoFile) {
  const std::string folder = folder_ + "/" + std::string(300, 'x');
  const Status status = CheckReplaced(folder, kModel);
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_EQ(status.message(), "cannot look at \"" + folder + "\": File name too long");
}

}  // namespace
}  // namespace millrace
