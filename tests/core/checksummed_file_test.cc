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

TEST(ChecksummedFileTest, AFullDiskIsSaidOnce) {
  auto file = ChecksummedFile::Create("/dev/full");
  ASSERT_TRUE(file.ok());
  (*file)->stream() << "x";
  const Result<FileSum> sum = (*file)->Finish();
  ASSERT_FALSE(sum.ok());
  EXPECT_THAT(sum.status().message(), testing::HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace millrace
