#include "reader/multiple_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <future>
#include <map>
#include <stdexcept>
#include <thread>

#include "core/file.h"
#include "datafeed/builtin_formats.h"
#include "reader/batch_reader.h"
#include "reader/double_buffer_reader.h"
#include "reader/row_reader.h"
#include "threads_now.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

/// Files "rows:N": 10 records from 10 * N on. "rows:bad" fails at its record 4, "rows:slow" waits there for a stop,
/// "rows:missing" cannot be opened.
ReaderRegistry RowRegistry() {
  ReaderRegistry registry;
  EXPECT_TRUE(
      registry
          .Add({"rows",
                {},
                "numbers",
                [](const std::string& file, const std::vector<TensorSpec>&) -> Result<std::unique_ptr<FileReader>> {
                  if (file == "missing") return NotFound("there is no \"missing\"");
                  if (file == "bad") return MakeRowReader(file, 900, 10, {.fails_at = 3});
                  if (file == "slow") return MakeRowReader(file, 800, 10, {.waits_at = 3});
                  return MakeRowReader(file, 10 * std::stoi(file), 10);
                }})
          .ok());
  return registry;
}

std::unique_ptr<MultipleReader> OpenRows(const ReaderRegistry& registry, std::vector<std::string> files, int threads,
                                         size_t buffer_size = 4) {
  return MultipleReader::Create({std::move(files), "rows", threads, buffer_size}, registry, RowShapes()).value();
}

TEST(MultipleReader, ReadsFilesInTheirOrderWithOneThread) {
  const ReaderRegistry registry = RowRegistry();
  const auto reader = OpenRows(registry, {"2", "0", "1"}, 1);
  std::vector<std::string> expected = Numbers(20, 30);
  const std::vector<std::string> rest = Numbers(0, 20);
  expected.insert(expected.end(), rest.begin(), rest.end());
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_THAT(ReadToEnd(*reader), ElementsAreArray(expected));
    ASSERT_TRUE(reader->ReInit().ok());
  }
}

TEST(MultipleReader, ReadsEveryRecordOnceWithManyThreads) {
  const ReaderRegistry registry = RowRegistry();
  std::vector<std::string> files;
  for (int i = 0; i < 40; ++i) files.push_back(std::to_string(i));
  for (const int threads : {2, 4, 8}) {
    const auto reader = OpenRows(registry, files, threads, 3);
    for (int pass = 0; pass < 3; ++pass) {
      std::vector<std::string> items = ReadToEnd(*reader);
      std::map<std::string, size_t> place;
      for (size_t i = 0; i < items.size(); ++i) place[items[i]] = i;
      EXPECT_THAT(items, testing::UnorderedElementsAreArray(Numbers(0, 400)));
      for (int i = 0; i < 400; ++i) {
        if (i % 10 == 0) continue;
        EXPECT_GT(place[std::to_string(i)], place[std::to_string(i - 1)]) << "the order within a file";
      }
      ASSERT_TRUE(reader->ReInit().ok());
    }
  }
}

class ThrowingReader final : public FileReader {
 public:
  explicit ThrowingReader(const std::string& file) : FileReader(file, RowShapes()) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>*, const std::stop_token&) override {
    throw std::runtime_error("by a read");
  }
  Status Rewind() override { return Status::Ok(); }
};

// Readers of a plugin were once made past what catches their exceptions.
TEST(MultipleReader, WhatAPluginsFormatThrowsIsAFailureOfTheFile) {
  ReaderRegistry plugin;
  ASSERT_TRUE(
      plugin
          .Add({"throwing",
                {},
                "nothing",
                [](const std::string& file, const std::vector<TensorSpec>&) -> Result<std::unique_ptr<FileReader>> {
                  if (file == "none") return std::unique_ptr<FileReader>();
                  if (file == "open") throw std::runtime_error("by an open");
                  return std::unique_ptr<FileReader>(std::make_unique<ThrowingReader>(file));
                }})
          .ok());
  ReaderRegistry registry;
  ASSERT_TRUE(registry.Adopt(std::move(plugin), "p.so").ok());
  const auto make = [&](const std::string& file) {
    return MultipleReader::Create({{file}, "throwing", 1, 4}, registry, RowShapes());
  };
  EXPECT_EQ(make("open").status().message(), "open: plugin \"p.so\" threw std::runtime_error: by an open");
  EXPECT_EQ(make("none").status().message(), "none: plugin \"p.so\" made no reader");
  std::vector<LoDTensor> item;
  EXPECT_EQ(make("read").value()->ReadNext(&item, {}).status().message(),
            "read: plugin \"p.so\" threw std::runtime_error: by a read");
}

TEST(MultipleReader, StartsNoMoreThreadsThanThereAreFiles) {
  const ReaderRegistry registry = RowRegistry();
  const int before = ThreadsNow();
  const auto reader = OpenRows(registry, {"0", "1"}, 1000000);
  std::vector<LoDTensor> item;
  ASSERT_TRUE(*reader->ReadNext(&item, {}));
  EXPECT_LE(ThreadsNow(), before + 2);
  EXPECT_EQ(ReadToEnd(*reader).size(), 19U);
}

// Once it waited for a second writer, without end.
TEST(MultipleReader, APipeDoesNotStartOver) {
  const TempDir folder = TempDir::Create("pipe_twice").value();
  const std::string path = folder.path() + "/rows.csv";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ReaderRegistry registry;
  ASSERT_TRUE(AddBuiltinFormats(&registry).ok());
  const std::vector<TensorSpec> shapes = {{DType::kFloat32, {-1, 1}, 0}};
  const auto reader = MultipleReader::Create({{path}, "", 1, 4}, registry, shapes).value();
  std::jthread writer([&] { std::ofstream(path) << "1\n2\n"; });
  EXPECT_EQ(ReadToEnd(*reader).size(), 2U);
  writer.join();
  ASSERT_TRUE(reader->ReInit().ok());
  std::vector<LoDTensor> item;
  EXPECT_EQ(reader->ReadNext(&item, {}).status().message(),
            path +
                ": a pipe is read once and cannot start over; write its bytes to a file to read them in more than "
                "one pass");
}

TEST(MultipleReader, AFileThatIsReplacedBetweenPassesIsAnError) {
  const TempDir folder = TempDir::Create("rows_twice").value();
  const std::string path = folder.path() + "/rows.csv";
  std::ofstream(path) << "1\n2\n3\n";
  ReaderRegistry registry;
  ASSERT_TRUE(AddBuiltinFormats(&registry).ok());
  const std::vector<TensorSpec> shapes = {{DType::kFloat32, {-1, 1}, 0}};
  const auto reader = MultipleReader::Create({{path}, "", 1, 4}, registry, shapes).value();
  EXPECT_EQ(ReadToEnd(*reader).size(), 3U);
  ASSERT_TRUE(reader->ReInit().ok());
  EXPECT_EQ(ReadToEnd(*reader).size(), 3U);
  std::ofstream(path) << "7\n";
  ASSERT_TRUE(reader->ReInit().ok());
  std::vector<LoDTensor> item;
  EXPECT_THAT(reader->ReadNext(&item, {}).status().message(),
              ::testing::HasSubstr("\"" + path + "\" has changed since it was first read, from 6 bytes to 2"));
}

TEST(MultipleReader, EndsAPassWithTheErrorOfAFile) {
  const ReaderRegistry registry = RowRegistry();
  const auto reader = OpenRows(registry, {"0", "bad", "1"}, 1);
  std::vector<std::string> expected = Numbers(0, 10);
  const std::vector<std::string> more = Numbers(900, 903);
  expected.insert(expected.end(), more.begin(), more.end());
  expected.push_back("bad data: bad: record 4: broken");
  EXPECT_THAT(ReadToEnd(*reader), ElementsAreArray(expected));
  EXPECT_THAT(ReadToEnd(*reader), ElementsAre("bad data: bad: record 4: broken"));
  for (const int threads : {2, 5}) {
    const auto many = OpenRows(registry, {"0", "1", "bad", "2", "3", "4"}, threads, 2);
    EXPECT_EQ(ReadToEnd(*many).back(), "bad data: bad: record 4: broken");
  }
}

TEST(MultipleReader, KnowsWhatIsWrongWithAnyFileBeforeTheFirstIsRead) {
  const ReaderRegistry registry = RowRegistry();
  const auto error = [&](OpenFilesOptions options) {
    return MultipleReader::Create(options, registry, RowShapes()).status().ToString();
  };
  EXPECT_EQ(error({{"rows:0", "rows:missing"}, "", 1, 1}), "not found: there is no \"missing\"");
  EXPECT_EQ(error({{"rows:0", "1.txt"}, "", 1, 1}),
            "invalid configuration: file \"1.txt\": its name does not say its format: write FORMAT: before it, or give "
            "the format; there are: rows");
  EXPECT_EQ(error({{}, "", 1, 1}), "invalid configuration: there are no files to open");
  EXPECT_EQ(error({{"rows:0"}, "", 0, 1}), "invalid configuration: files are read by at least 1 thread, not 0");
  EXPECT_EQ(error({{"rows:0"}, "", 1, 0}), "invalid configuration: the buffer holds at least 1 example");
}

TEST(MultipleReader, LeavesNoThreadBehindWhenItIsDestroyedInTheMiddle) {
  const ReaderRegistry registry = RowRegistry();
  const int before = ThreadsNow();
  for (const std::vector<std::string>& files :
       {std::vector<std::string>{"0", "1", "2", "3", "4"}, std::vector<std::string>{"slow", "slow", "0", "slow"}}) {
    auto reader = OpenRows(registry, files, 4, 2);
    std::vector<LoDTensor> item;
    ASSERT_TRUE(*reader->ReadNext(&item, {}));
    EXPECT_GT(ThreadsNow(), before);
    reader.reset();
    EXPECT_EQ(ThreadsOnce(before), before);
  }
}

TEST(MultipleReader, StopsWaitingWhenItIsAskedTo) {
  const ReaderRegistry registry = RowRegistry();
  auto reader = std::make_unique<DoubleBufferReader>(OpenRows(registry, {"slow"}, 2));
  std::vector<LoDTensor> item;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(*reader->ReadNext(&item, {}));
  std::stop_source stop;
  std::future<Result<bool>> waiting =
      std::async(std::launch::async, [&] { return reader->ReadNext(&item, stop.get_token()); });
  stop.request_stop();
  EXPECT_EQ(waiting.get().status().code(), StatusCode::kCancelled);
}

TEST(MultipleReader, IsReadThroughDecoratorsInOrder) {
  const ReaderRegistry registry = RowRegistry();
  DoubleBufferReader reader(BatchReader::Create(OpenRows(registry, {"0", "1"}, 1, 1), 8, false).value());
  EXPECT_THAT(ReadToEnd(reader), ElementsAre("0 1 2 3 4 5 6 7", "8 9 10 11 12 13 14 15", "16 17 18 19"));
}

}  // namespace
}  // namespace millrace
