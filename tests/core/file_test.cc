#include "core/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "core/byte_source.h"
#include "core/same_file.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<TempDir> made = TempDir::Create("millrace_file_");
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    dir_.emplace(std::move(made).value());
  }
  std::string Path(const std::string& name) const { return dir_->path() + "/" + name; }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_->path())) names.insert(entry.path().filename());
    return names;
  }
  std::optional<TempDir> dir_;
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  std::string content(300000, 'x');
  content += '\0';
  content += "end";
  ASSERT_TRUE(WriteFileAtomically(Path("a"), content).ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), content);
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "").ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), "");
}

TEST_F(FileTest, ReadsFilesThatSayNoSize) {
  EXPECT_NE(ReadFile("/proc/self/status").value().find("Pid:"), std::string::npos);
}

TEST_F(FileTest, MissingFilesAndFoldersAreErrors) {
  EXPECT_EQ(ReadFile(Path("nothing")).status().ToString(), "not found: no such file: \"" + Path("nothing") + "\"");
  EXPECT_EQ(ReadFile(dir_->path()).status().ToString(),
            "input/output error: \"" + dir_->path() + "\" is a folder, not a file");
}

TEST_F(FileTest, AnUncommittedFileNeverAppears) {
  {
    Result<AtomicFile> file = AtomicFile::Create(Path("b"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Append("half").ok());
  }
  EXPECT_TRUE(fs::is_empty(dir_->path()));
}

TEST_F(FileTest, WhatAKilledRunLeftIsTakenOverByTheNext) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Result<AtomicFile> file = AtomicFile::Create(Path("b"));
    (void)file->Append("a longer content, half of it");
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(Names(), std::set<std::string>{"b.millrace-writing"});
  ASSERT_TRUE(WriteFileAtomically(Path("b"), "whole").ok());
  EXPECT_EQ(ReadFile(Path("b")).value(), "whole");
  EXPECT_EQ(Names(), std::set<std::string>{"b"});
}

TEST_F(FileTest, TwoWritersOfAFileTakeTurns) {
  AtomicFile first = AtomicFile::Create(Path("b")).value();
  std::jthread second([this] { EXPECT_TRUE(WriteFileAtomically(Path("b"), "second").ok()); });
  ASSERT_TRUE(first.Append("the first, ").ok());
  ASSERT_TRUE(first.Append("which is longer").ok());
  ASSERT_TRUE(first.Commit().ok());
  second.join();
  EXPECT_EQ(ReadFile(Path("b")).value(), "second");
  EXPECT_EQ(Names(), std::set<std::string>{"b"});
}

TEST_F(FileTest, IsNotWrittenThroughALinkBesideIt) {
  std::ofstream(Path("own")) << "the user's";
  fs::create_symlink(Path("own"), Path("b.millrace-writing"));
  EXPECT_FALSE(WriteFileAtomically(Path("b"), "x").ok());
  EXPECT_EQ(ReadFile(Path("own")).value(), "the user's");
}

TEST_F(FileTest, AWrittenFileHasTheUsualRights) {
  ASSERT_TRUE(WriteFileAtomically(Path("c"), "x").ok());
  std::ofstream(Path("d")) << "x";
  EXPECT_EQ(fs::status(Path("c")).permissions(), fs::status(Path("d")).permissions());
}

TEST_F(FileTest, AFolderThatIsNotThereIsNamed) {
  const Status status = WriteFileAtomically(Path("no/such/file"), "x");
  EXPECT_EQ(status.message(), "cannot write beside \"" + Path("no/such/file") + "\": No such file or directory");
}

TEST_F(FileTest, APipeThatStaysSilentIsLeftAtAStop) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const std::unique_ptr<ByteSource> source = OpenFile(Path("pipe")).value();
  std::array<char, 8> bytes{};
  // Nobody writes yet, which is not the end.
  std::stop_source stop;
  const std::jthread stopper([&stop] { stop.request_stop(); });
  EXPECT_EQ(source->Read(bytes, stop.get_token()).status().code(), StatusCode::kCancelled);
  const int writer = ::open(Path("pipe").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::write(writer, "abc", 3), 3);
  EXPECT_EQ(source->Read(bytes, {}).value(), 3U);
  ::close(writer);
  EXPECT_EQ(source->Read(bytes, {}).value(), 0U);
}

TEST_F(FileTest, NeitherADeviceNorAFolderIsReplaced) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(WriteFileAtomically(Path("pipe"), "x").message(),
            "cannot write \"" + Path("pipe") + "\": it is no regular file, whose place a new file would take");
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
  fs::create_directory(Path("folder"));
  EXPECT_EQ(WriteFileAtomically(Path("folder"), "x").message(),
            "cannot write \"" + Path("folder") + "\": it is a folder, whose place a new file would take");
}

TEST_F(FileTest, ATempDirGoesWithItsContent) {
  const std::string path = dir_->path();
  fs::create_directories(path + "/x/y");
  std::ofstream(path + "/x/y/z") << "x";
  dir_.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(FileTest, IsTheSameUnderEveryNameAndNoDeviceIs) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "1").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("b"), "1").ok());
  fs::create_symlink(Path("a"), Path("link"));
  fs::create_hard_link(Path("a"), Path("hard"));
  EXPECT_TRUE(IsSamePlainFile(Path("a"), dir_->path() + "/./a"));
  EXPECT_TRUE(IsSamePlainFile(Path("a"), Path("link")));
  EXPECT_TRUE(IsSamePlainFile(Path("hard"), Path("a")));
  EXPECT_FALSE(IsSamePlainFile(Path("a"), Path("b")));
  EXPECT_FALSE(IsSamePlainFile(Path("none"), Path("none")));
  EXPECT_FALSE(IsSamePlainFile("/dev/null", "/dev/null"));
}

}  // namespace
}  // namespace millrace
