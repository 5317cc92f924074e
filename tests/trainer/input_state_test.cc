#include "job/input_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/file.h"

namespace millrace {
namespace {

/// `count` files, each with its own number as its content.
std::vector<std::string> NumberedFiles(const TempDir& folder, int count) {
  std::vector<std::string> files;
  for (int i = 0; i < count; ++i) {
    files.push_back(folder.path() + "/part-" + std::to_string(i));
    std::ofstream(files.back()) << i;
  }
  return files;
}

TEST(LookAtInputsTest, ThatFewThreadsTakeAreInTheOrderOfTheFiles) {
  const TempDir folder = TempDir::Create("look").value();
  const std::vector<std::string> files = NumberedFiles(folder, 300);
  size_t most = 0;
  const auto states = LookAtInputs(files, {}, [&most](size_t done) { most = std::max(most, done); });
  ASSERT_TRUE(states.ok()) << states.status().message();
  ASSERT_EQ(states->size(), files.size());
  EXPECT_LE(most, files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ((*states)[i].SerializeAsString(), LookAtInput(files[i]).SerializeAsString()) << files[i];
  }
}

TEST(LookAtInputsTest, EndAtAStopThatComesWhileThereAreManyFilesLeft) {
  const TempDir folder = TempDir::Create("look").value();
  const std::vector<std::string> files(100000, NumberedFiles(folder, 1)[0]);
  std::stop_source stop;
  size_t seen = 0;
  const auto states = LookAtInputs(files, stop.get_token(), [&](size_t done) {
    seen = done;
    stop.request_stop();
  });
  ASSERT_EQ(states.status().code(), StatusCode::kCancelled);
  EXPECT_LT(seen, files.size());
  EXPECT_THAT(states.status().message(), testing::HasSubstr(" of 100000 input files"));
}

// A file that was taken away behind the check of the job, and put back before the run went on.
TEST(CompareInputTest, AFileThatWasNotThereMayComeAndOneThatWasMayNotGo) {
  const TempDir folder = TempDir::Create("look").value();
  const std::string file = folder.path() + "/part-0";
  const StoredInputState missing = LookAtInput(file);
  std::ofstream(file) << "1 0\n";
  const StoredInputState there = LookAtInput(file);
  bool written_again = true;
  EXPECT_TRUE(CompareInput(missing, there, &written_again).ok());
  EXPECT_FALSE(written_again);
  EXPECT_EQ(CompareInput(there, missing, &written_again).message(), "was a plain file and is none now");
  ASSERT_EQ(::mkfifo((file + ".pipe").c_str(), 0600), 0);
  EXPECT_EQ(CompareInput(LookAtInput(file + ".pipe"), there, &written_again).message(),
            "was no plain file and is one now");
}

}  // namespace
}  // namespace millrace
