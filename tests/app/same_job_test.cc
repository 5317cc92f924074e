#include "trainer/same_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "comm/on_ranks.h"
#include "core/file.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// What `check` comes to on each of three ranks.
std::vector<Status> OnThreeRanks(const std::function<Status(RankGroup&)>& check) {
  return OnRanks(3, [&](Communicator& communicator) {
    RankGroup group(communicator);
    return check(group);
  });
}

/// Ranks of hosts that have copies of their own of some files.
class CopiesOfRanks : public testing::Test {
 protected:
  std::string Copy(int rank, int file) const {
    return folder_.path() + "/" + std::to_string(rank) + "/part-" + std::to_string(file);
  }
  void Write(int rank, int file, int bytes) const {
    std::filesystem::create_directories(std::filesystem::path(Copy(rank, file)).parent_path());
    std::ofstream(Copy(rank, file)) << std::string(static_cast<size_t>(bytes), 'x');
  }
  /// What each of three ranks is told of its copies of `files` files.
  std::vector<Status> Check(int files) const {
    return OnThreeRanks([&](RankGroup& group) {
      std::vector<std::string> copies;
      for (int file = 0; file < files; ++file) copies.push_back(Copy(group.rank(), file));
      return CheckSameSizes(group, copies);
    });
  }

  const TempDir folder_ = TempDir::Create("copies").value();
};

TEST_F(CopiesOfRanks, OneThatIsHalfThereEndsAllWithFileSizesAndRanks) {
  for (int rank = 0; rank < 3; ++rank) {
    for (int file = 0; file < 4; ++file) Write(rank, file, 100);
  }
  for (const Status& status : Check(4)) EXPECT_TRUE(status.ok()) << status.ToString();

  Write(2, 1, 60);
  std::vector<Status> statuses = Check(4);
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kBadData);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("0/part-1\" has 100 bytes on rank 0 (" + HostName() + ") and 60 bytes on rank 2 ("),
                      HasSubstr("(of 4 files 1 differ so); copy the files to all hosts")));
  }
  Write(1, 3, 101);
  Write(2, 3, 0);
  statuses = Check(4);
  EXPECT_THAT(statuses[0].message(), AllOf(HasSubstr("part-1\" has"), HasSubstr("(of 4 files 2 differ so)")));
}

TEST_F(CopiesOfRanks, WhatARankDoesNotSeeHasNoSizeToCompare) {
  Write(0, 0, 100);
  Write(2, 0, 100);  // not on rank 1
  Write(1, 1, 50);
  for (const Status& status : Check(3)) EXPECT_TRUE(status.ok()) << status.ToString();

  Write(2, 1, 51);
  const std::vector<Status> statuses = Check(3);
  EXPECT_THAT(statuses[0].message(),
              AllOf(HasSubstr(" has 50 bytes on rank 1 ("), HasSubstr(" and 51 bytes on rank 2 (")));
}

// A file that one rank alone lacked was told as another output folder, the line behind it.
TEST(JobsOfRanks, AreToldByTheLinesThatOneHasAlone) {
  const std::string job = "seed: 1\nfile: \"a\"\nfile: \"b\"\nfolder: \"o\"\n";
  const auto told = [&](const std::string& other) {
    const std::vector<Status> statuses =
        OnThreeRanks([&](RankGroup& group) { return CheckSameText(group, group.rank() == 1 ? other : job); });
    EXPECT_EQ(statuses[2].code(), StatusCode::kInvalidConfig);
    return statuses[0].message();
  };
  EXPECT_THAT(told("seed: 1\nfile: \"a\"\nfolder: \"o\"\n"),
              HasSubstr("sees other input files: here nothing more, there \"file: \"b\"\""));
  EXPECT_THAT(told("seed: 2\nfile: \"a\"\nfile: \"b\"\nfolder: \"o\"\n"),
              HasSubstr("here \"seed: 2\", there \"seed: 1\""));
  EXPECT_THAT(told("file: \"a\"\nseed: 1\nfile: \"b\"\nfolder: \"o\"\n"),
              HasSubstr("in another order, of slots or other fields: here \"file: \"a\"\", there \"seed: 1\""));
  EXPECT_LT(told("  word: \"" + std::string(100'000, 'x') + "\"\n" + job).size(), 500);
}

TEST(JobsOfRanks, FilesInAnotherOrderAreTold) {
  const std::vector<Status> statuses = OnThreeRanks([&](RankGroup& group) {
    return CheckSameText(group, group.rank() == 1 ? "seed: 1\ninput file: \"b\"\ninput file: \"a\"\n"
                                                  : "seed: 1\ninput file: \"a\"\ninput file: \"b\"\n");
  });
  EXPECT_THAT(statuses[0].message(), HasSubstr("this rank sees the same input files as rank 0 in another order"));
}

}  // namespace
}  // namespace millrace
