#include "core/event_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/crc32c.h"

namespace millrace {
namespace {

template <class T>
T ReadAt(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// CRC-32C of "123456789" is 0xE3069283 (RFC 3720); masked as TFRecord does it.
TEST(EventWriterTest, FramesCarryLengthAndMaskedChecksums) {
  const std::string record = TfRecord("123456789");
  ASSERT_EQ(record.size(), 8 + 4 + 9 + 4u);
  EXPECT_EQ(ReadAt<uint64_t>(record, 0), 9u);
  EXPECT_EQ(record.substr(12, 9), "123456789");
  const uint32_t crc = 0xE3069283U;
  EXPECT_EQ(ReadAt<uint32_t>(record, 21), ((crc >> 15) | (crc << 17)) + 0xa282ead8U);
}

std::vector<std::string> Records(const std::string& bytes) {
  std::vector<std::string> records;
  for (size_t at = 0; at < bytes.size();) {
    const auto length = static_cast<size_t>(ReadAt<uint64_t>(bytes, at));
    records.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(TfRecord(records.back()), bytes.substr(at, length + 16));
    at += length + 16;
  }
  return records;
}

// The golden bytes of the second event were read back by the tensorboard package (2.21).
TEST(EventWriterTest, WritesTheVersionAndThenScalars) {
  Result<TempDir> folder = TempDir::Create("events");
  ASSERT_TRUE(folder.ok());
  Result<std::unique_ptr<EventWriter>> writer = EventWriter::Create(folder->path() + "/tensorboard", 301);
  ASSERT_TRUE(writer.ok()) << writer.status().ToString();
  const Scalar scalars[] = {{"train/loss", 0.5}, {"train/auc", std::nan("")}};
  ASSERT_TRUE((*writer)->AddScalars(300, 2.0, scalars).ok());
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder->path() + "/tensorboard")) {
    files.push_back(entry.path().string());
  }
  ASSERT_EQ(files.size(), 1u);
  EXPECT_THAT(files[0], testing::HasSubstr("events.out.tfevents."));
  const std::vector<std::string> records = Records(*ReadFile(files[0]));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_THAT(records[0], testing::HasSubstr("brain.Event:2"));
  const std::string expected = std::string("\x09\0\0\0\0\0\0\0\x40", 9) + std::string("\x10\xac\x02", 3) +
                               std::string("\x2a\x13\x0a\x11\x0a\x0atrain/loss\x15\0\0\0\x3f", 21);
  EXPECT_EQ(records[2], expected);
  // The step, and session_log { status: START }.
  EXPECT_THAT(records[1], testing::EndsWith(std::string("\x10\xad\x02\x3a\x02\x08\x01", 7)));
}

TEST(EventWriterTest, AFolderThatCannotBeMadeIsAnError) {
  const auto writer = EventWriter::Create("/proc/no/such", std::nullopt);
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.status().code(), StatusCode::kIo);
}

}  // namespace
}  // namespace millrace
