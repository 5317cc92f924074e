#include "config/file_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileListTest : public ::testing::Test {
 protected:
  FileListTest() {
    std::string name = (std::filesystem::path(testing::TempDir()) / "file_list.XXXXXX").string();
    folder_ = mkdtemp(name.data());
    Write("data/part-10");
    Write("data/part-2");
    Write("data/part-1");
    Write("data/.hidden");
    Write("data/_SUCCESS");
    Write("data/deeper/part-3");
    Write("odd/it's [1] \"x\" $y");
    std::filesystem::create_directories(folder_ + "/empty");
  }
  ~FileListTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text = "1 0\n") {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name) << text;
  }

  /// Expands entries below the test's folder; what comes back is relative to it again.
  std::vector<std::string> Expand(const std::vector<std::string>& entries) {
    std::vector<std::string> absolute;
    FieldPositions positions;
    diagnostics_ = Diagnostics();
    std::string text;
    for (const std::string& entry : entries) text += "filelist: \"" + entry + "\"\n";
    const int source = diagnostics_.AddSource("job.prototxt", text);
    for (size_t i = 0; i < entries.size(); ++i) {
      const std::string& entry = entries[i];
      const bool list = entry.starts_with("@");
      const bool as_is = HasScheme(entry) || entry.empty() || entry == " ";
      absolute.push_back(as_is ? entry : list ? "@" + folder_ + "/" + entry.substr(1) : folder_ + "/" + entry);
      positions.Set("filelist[" + std::to_string(i) + "]", {source, static_cast<int>(i) + 1, 11, 1});
    }
    std::vector<std::string> files = ExpandFileList(absolute, "filelist", positions, &diagnostics_).names;
    for (std::string& file : files) {
      if (file.starts_with(folder_)) file = file.substr(folder_.size() + 1);
    }
    return files;
  }

  std::string Report() const { return diagnostics_.Render(); }

  std::string folder_;
  Diagnostics diagnostics_;
};

TEST_F(FileListTest, SortsWithinAnEntryAndKeepsTheOrderOfEntries) {
  EXPECT_THAT(Expand({"data/part-2", "data/part-1*", "odd"}),
              ElementsAre("data/part-2", "data/part-1", "data/part-10", "odd/it's [1] \"x\" $y"));
  EXPECT_THAT(Report(), IsEmpty());
}

TEST_F(FileListTest, AFolderIsItsFilesWithoutHiddenOnesAndMarkers) {
  EXPECT_THAT(Expand({"data"}), ElementsAre("data/part-1", "data/part-10", "data/part-2"));
  EXPECT_THAT(Expand({"data/"}), ElementsAre("data/part-1", "data/part-10", "data/part-2"));
  EXPECT_THAT(Expand({"data/*"}), ElementsAre("data/_SUCCESS", "data/part-1", "data/part-10", "data/part-2"));
}

TEST_F(FileListTest, AFileIsTakenByItsNameWhateverCharactersItHas) {
  EXPECT_THAT(Expand({"odd/it's [1] \"x\" $y"}), ElementsAre("odd/it's [1] \"x\" $y"));
}

TEST_F(FileListTest, AListIsRelativeToItsOwnFolder) {
  Write("data/list.txt", "# the newest first\npart-2\n\n  part-1?  \n@deeper/list.txt\n");
  Write("data/deeper/list.txt", "part-3\r\n../part-1\n");
  EXPECT_THAT(Expand({"@data/list.txt"}),
              ElementsAre("data/part-2", "data/part-10", "data/deeper/part-3", "data/deeper/../part-1"));
  EXPECT_THAT(Report(), IsEmpty());
}

TEST_F(FileListTest, MistakesInAListArePlacedInTheList) {
  Write("list.txt", "data/part-1\n  data/part-3\n");
  Expand({"@list.txt"});
  EXPECT_THAT(Report(), HasSubstr("/list.txt:2:3: error: no file \"part-3\" in " + folder_ + "/data; did you mean "));
  Write("circle.txt", "@circle.txt\n");
  Expand({"@circle.txt"});
  EXPECT_THAT(Report(), HasSubstr("file lists name each other"));
  Write("list.txt", "data/part-1\n@other.txt\n");
  Write("other.txt", "@list.txt\n");
  Expand({"@list.txt"});
  EXPECT_THAT(Report(), HasSubstr("/other.txt:1:1: error: \"@" + folder_ + "/list.txt\": file lists name each other"));
  EXPECT_THAT(Report(), testing::Not(HasSubstr("named more than once")));
  Write("nothing.txt", "# nothing\n");
  Expand({"@nothing.txt", "@none.txt"});
  EXPECT_THAT(Report(), HasSubstr("names no files"));
  EXPECT_THAT(Report(), HasSubstr("no file \"none.txt\""));
}

TEST_F(FileListTest, NamesWithASchemeAreLeftAlone) {
  EXPECT_THAT(Expand({"hdfs:/logs/*", "s3://bucket/a b", "afs:x"}),
              ElementsAre("hdfs:/logs/*", "s3://bucket/a b", "afs:x"));
  EXPECT_FALSE(HasScheme("data/a:b"));
  EXPECT_FALSE(HasScheme("1x:b"));
  EXPECT_FALSE(HasScheme(":b"));
  EXPECT_FALSE(HasScheme("plain"));
}

TEST_F(FileListTest, EveryEntryThatNamesNothingIsAnError) {
  EXPECT_THAT(Expand({"data/part-11", "dta/part-1", "data/nothing-*", "empty", "", " ", "dta/*", "data/deepe*"}),
              IsEmpty());
  EXPECT_EQ(diagnostics_.errors(), 8) << Report();
  EXPECT_THAT(Report(), HasSubstr("job.prototxt:1:11: error: no file \"part-11\" in " + folder_ +
                                  "/data; did you mean \"part-1"));
  EXPECT_THAT(Report(), HasSubstr("no folder \"dta\" in " + folder_ + "; did you mean \"data\"?"));
  EXPECT_THAT(Report(), HasSubstr("data/nothing-*\" matches no file\n"));
  EXPECT_THAT(Report(), HasSubstr("empty\" holds no files"));
  EXPECT_THAT(Report(), HasSubstr("a file name is empty"));
  EXPECT_THAT(Report(), HasSubstr("dta/*\" matches no file: no folder \"dta\""));
  EXPECT_THAT(Report(), HasSubstr("data/deepe*\" matches folders only, such as \"" + folder_ + "/data/deepe"));
}

TEST_F(FileListTest, AFolderThatHoldsFoldersAloneSaysThatTheyAreNotLookedInto) {
  Write("images/cat/a.jpg", "");
  EXPECT_THAT(Expand({"images"}), IsEmpty());
  EXPECT_THAT(Report(), HasSubstr("/images\" holds no files, and folders in it are not looked into: name them (the "
                                  "format jpeg takes \"jpeg:" +
                                  folder_ + "/images\")"));
}

TEST_F(FileListTest, AFileNamedTwiceIsKeptWithAWarning) {
  EXPECT_THAT(Expand({"data/part-1", "data/./part-1"}), ElementsAre("data/part-1", "data/./part-1"));
  EXPECT_EQ(diagnostics_.errors(), 0);
  EXPECT_THAT(Report(), HasSubstr("job.prototxt:2:11: warning: "));
  EXPECT_THAT(Report(), HasSubstr("is named more than once"));
}

TEST_F(FileListTest, AListOfWindowsBeginsWithAMarkAndNotWithAName) {
  Write("data/list.txt", "\xEF\xBB\xBFpart-2\r\npart-1\r\n");
  EXPECT_THAT(Expand({"@data/list.txt"}), ElementsAre("data/part-2", "data/part-1"));
  EXPECT_THAT(Report(), IsEmpty());
}

TEST_F(FileListTest, LinksThatLeadInACircleAreNoMissingFile) {
  std::filesystem::create_symlink("there", folder_ + "/here");
  std::filesystem::create_symlink("here", folder_ + "/there");
  Expand({"here", "here/part-1"});
  EXPECT_THAT(Report(), HasSubstr("/here\" cannot be read: Too many levels of symbolic links\n"));
  EXPECT_THAT(Report(), HasSubstr("/here/part-1\" cannot be read: Too many levels of symbolic links, at \"" + folder_ +
                                  "/here\"\n"));
}

TEST_F(FileListTest, ANamedPipeIsReadOnceHoweverItIsNamed) {
  std::filesystem::create_directories(folder_ + "/mixed");
  Write("mixed/part-0");
  ASSERT_EQ(::mkfifo((folder_ + "/mixed/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", folder_ + "/mixed/pipe-link");
  const std::string mixed = folder_ + "/mixed";
  FieldPositions positions;
  for (const std::vector<std::string>& entries :
       {std::vector{mixed}, {mixed + "/p*"}, {mixed + "/part-0", mixed + "/pipe", mixed + "/pipe-link"}}) {
    const ExpandedFiles files = ExpandFileList(entries, "filelist", positions, &diagnostics_);
    EXPECT_THAT(files.names, ElementsAre(mixed + "/part-0", mixed + "/pipe", mixed + "/pipe-link"));
    ASSERT_EQ(files.read_once.size(), 2U);
    EXPECT_EQ(files.read_once[0].name, mixed + "/pipe");
    EXPECT_TRUE(files.read_once[1].is_pipe);
    EXPECT_EQ(files.read_once[0].identity, files.read_once[1].identity);
  }
}

TEST_F(FileListTest, AStopEndsTheLookAtTheFilesOfAGlobWithoutAnError) {
  std::stop_source stop;
  stop.request_stop();
  FieldPositions positions;
  EXPECT_THAT(
      ExpandFileList({folder_ + "/data/*", folder_ + "/none"}, "filelist", positions, &diagnostics_, stop.get_token())
          .names,
      IsEmpty());
  EXPECT_THAT(Report(), IsEmpty());
}

}  // namespace
}  // namespace millrace
