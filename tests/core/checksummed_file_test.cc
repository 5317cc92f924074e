#include "core/checksummed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/crc32c.h"
#include "core/file.h"

namespace millrace {
namespace {

TEST(ChecksummedFileTest, KnowsItsSum) {
  Result<TempDir> folder = TempDir::Create("sums");
  ASSERT_TRUE(folder.ok());
  const std::string path = folder->path() + "/f";
  auto file = ChecksummedFile::Create(path);
  ASSERT_TRUE(file.ok());
  std::string content;
  for (int i = 0; i < 300000; ++i) content += std::to_string(i) + " ";  // more than a buffer
  (*file)->stream() << content;
  const Result<FileSum> sum = (*file)->Finish();
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(sum->bytes, content.size());
  EXPECT_EQ(sum->crc32c, Crc32c(0, content.data(), content.size()));
  EXPECT_EQ(*ReadFile(path), content);
  EXPECT_TRUE(CheckFileSum(path, *sum).ok());
}

TEST(ChecksummedFileTest, OneBitOrOneByteLessIsFound) {
  Result<TempDir> folder = TempDir::Create("sums");
  const std::string path = folder->path() + "/f";
  auto file = ChecksummedFile::Create(path);
  (*file)->stream() << "millrace";
  const FileSum sum = *(*file)->Finish();
  std::ofstream(path) << "millracd";
  EXPECT_THAT(CheckFileSum(path, sum).message(), testing::HasSubstr("checksum"));
  std::ofstream(path) << "millrac";
  EXPECT_THAT(CheckFileSum(path, sum).message(), testing::HasSubstr("8 bytes were written, it has 7"));
  EXPECT_EQ(CheckFileSum(path, sum).code(), StatusCode::kBadData);
}

// Behind its own CRC-32C, all content has one and the same: so end the blocks of a table.
TEST(ChecksummedFileTest, AnotherFileWithSumsOfItsOwnIsFound) {
  Result<TempDir> folder = TempDir::Create("sums");
  const auto write = [&folder](const std::string& name, const std::string& content) {
    auto file = ChecksummedFile::Create(folder->path() + "/" + name);
    const uint32_t sum = Crc32c(0, content.data(), content.size());
    (*file)->stream() << content << std::string(reinterpret_cast<const char*>(&sum), sizeof(sum));
    return *(*file)->Finish();
  };
  const FileSum own = write("own", "of today");
  const FileSum other = write("other", "or older");
  EXPECT_EQ(own.crc32c, other.crc32c);
  EXPECT_TRUE(CheckFileSum(folder->path() + "/own", own).ok());
  EXPECT_THAT(CheckFileSum(folder->path() + "/other", own).message(), testing::HasSubstr("is another file"));
  const FileSum of_an_older_version{own.bytes, own.crc32c, std::nullopt};
  EXPECT_TRUE(CheckFileSum(folder->path() + "/own", of_an_older_version).ok());
}

TEST(ChecksummedFileTest, AFullDiskIsSaidOnce) {
  auto file = ChecksummedFile::Create("/dev/full");
  ASSERT_TRUE(file.ok());
  (*file)->stream() << "x";
  const Result<FileSum> sum = (*file)->Finish();
  ASSERT_FALSE(sum.ok());
  EXPECT_THAT(sum.status().message(), testing::HasSubstr("No space left on device"));
}

TEST(ChecksummedFileTest, AStopEndsTheWritingAndTheReading) {
  const TempDir folder = TempDir::Create("sums").value();
  const std::string megabyte(size_t{1} << 20, 'x');
  const auto write = [&](const std::string& name, const LongWork& work) {
    auto file = ChecksummedFile::Create(folder.path() + "/" + name, work);
    for (int i = 0; i < 20; ++i) (*file)->stream() << megabyte;
    return (*file)->Finish();
  };
  uint64_t told = 0;
  const Result<FileSum> whole = write("whole", {{}, [&told](uint64_t bytes) { told += bytes; }});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->bytes, uint64_t{20} << 20);
  EXPECT_EQ(told, whole->bytes);

  std::stop_source stop;
  told = 0;
  const auto stop_at_three = [&](uint64_t bytes) {
    told += bytes;
    if (told >= uint64_t{3} << 20) stop.request_stop();
  };
  const Status cut = write("cut", {stop.get_token(), stop_at_three}).status();
  EXPECT_EQ(cut.code(), StatusCode::kCancelled) << cut.message();
  EXPECT_LE(told, uint64_t{4} << 20);
  EXPECT_EQ(CheckFileSum(folder.path() + "/whole", *whole, {stop.get_token()}).code(), StatusCode::kCancelled);
  EXPECT_EQ(ReadFile(folder.path() + "/whole", stop.get_token()).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(ReadFile(folder.path() + "/whole", std::stop_token())->size(), whole->bytes);
}

}  // namespace
}  // namespace millrace
