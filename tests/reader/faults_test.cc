// What can go wrong while readers read ahead in threads: every format cut short, readers that fail or go away in the
// middle, a disk that is full. The error arrives with its file, and every thread is gone afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <filesystem>

#include "paths.h"
#include "reader/batch_reader.h"
#include "reader/double_buffer_reader.h"
#include "reader/format_files.h"
#include "reader/jpeg_picture.h"
#include "reader/multi_pass_reader.h"
#include "reader/multiple_reader.h"
#include "reader/recordio.h"
#include "reader/row_reader.h"
#include "reader/shuffle_reader.h"
#include "record_features.pb.h"
#include "threads_now.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

const std::vector<TensorSpec> kThreeAndOne = {{DType::kFloat32, {-1, 3}, 0, "x"}, {DType::kInt64, {-1, 1}, 0, "label"}};
const std::vector<TensorSpec> kOneAndThree = {kThreeAndOne[1], kThreeAndOne[0]};

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string GzipBytes(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
  return ReadFile(path).value();
}

std::string ZstdBytes(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string RecordIOBytes(const std::string& path) {
  RecordIOWriter writer = RecordIOWriter::Create(path).value();
  std::vector<LoDTensor> record(2);
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 3; ++k) record[0].values.Resize<float>({1, 3})[k] = static_cast<float>(k);
    record[1].values.Resize<int64_t>({1, 1})[0] = i;
    EXPECT_TRUE(writer.Append(record).ok());
  }
  EXPECT_TRUE(writer.Finish().ok());
  return ReadFile(path).value();
}

std::string OfRecordBytes() {
  OfRecord record;
  for (const float x : {1.F, 2.F, 3.F}) (*record.mutable_feature())["x"].mutable_float_list()->add_value(x);
  (*record.mutable_feature())["label"].mutable_int64_list()->add_value(7);
  const std::string message = record.SerializeAsString();
  const uint64_t size = message.size();
  return Repeated(std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + message, 40);
}

/// A file, how much of its end is cut off, and what is said of it then.
struct CutFile {
  std::string name;
  std::string whole;
  size_t cut = 0;
  std::vector<TensorSpec> shapes;
  std::string message;
};

class ReaderFaults : public FormatFiles {
 protected:
  std::vector<CutFile> CutFiles() const {
    const std::string csv = Repeated("1,2,3,7\n", 40);
    const std::string golden = SourceDir() + "/tests/golden/records/";
    const std::vector<TensorSpec> named = {{DType::kFloat32, {-1, 2}, 0, "x"}, {DType::kInt64, {-1, 1}, 1, "ids"}};
    std::vector<CutFile> files = {
        {"a.csv", csv, 3, kThreeAndOne, "a.csv:40: 3 columns; the outputs take 4"},
        {"a.csv.gz", GzipBytes(folder() + "/whole.gz", csv), 9, kThreeAndOne, "a.csv.gz"},
        {"a.csv.zst", ZstdBytes(csv), 1, kThreeAndOne, "a.csv.zst"},
        {"a.libsvm", Repeated("7 1:1 3:2\n", 40), 2, kOneAndThree,
         "a.libsvm:40: expected a value after the index, found \"3:\""},
        {"a.multi_slot", Repeated("3 1 2 3 1 7\n", 40), 3, kThreeAndOne, "a.multi_slot:40:10: slot \"label\""},
        {"a.recordio", RecordIOBytes(folder() + "/whole.recordio"), 5, kThreeAndOne,
         "a.recordio: byte 20: the file ends within a chunk"},
        {"a.tfrecord", Repeated(ReadFile(golden + "features.tfrecord").value(), 4), 2, named,
         "the file ends within a record"},
        {"packed.tfrecord", ReadFile(golden + "packed.tfrecord").value(), 8, named, "packed.tfrecord"},
        {"a.ofrecord", OfRecordBytes(), 2, kThreeAndOne, "the file ends within a record"},
    };
    if (HasJpeg()) {
      files.push_back({"a.jpg",
                       JpegPicture(8, 8, 1, [](int x, int y, int) { return 31 * x ^ 17 * y; }),
                       10,
                       {{DType::kFloat32, {-1, 1, 8, 8}, 0}},
                       "a.jpg: the JPEG picture is damaged"});
    }
    return files;
  }

  /// Whole files, with `file` among them, read ahead by threads, shuffled, in batches that are read ahead.
  std::unique_ptr<ReaderBase> Stack(const CutFile& file, int threads) const {
    std::vector<std::string> files(3, Write("whole." + file.name, file.whole));
    files.insert(files.begin() + 1, folder() + "/" + file.name);
    return ReadAhead(MultipleReader::Create({files, "", threads, 4}, BuiltinFormats(), file.shapes).value());
  }
  static std::unique_ptr<ReaderBase> ReadAhead(std::unique_ptr<ReaderBase> reader) {
    reader = std::make_unique<ShuffleReader>(std::move(reader), 5, 1);
    reader = BatchReader::Create(std::move(reader), 2, false).value();
    reader = std::make_unique<MultiPassReader>(std::move(reader), 2);
    return std::make_unique<DoubleBufferReader>(std::move(reader));
  }
  /// The failure that ends reading; ok when it ends without one.
  static Status End(ReaderBase& reader) {
    std::vector<LoDTensor> item;
    for (;;) {
      const Result<bool> more = reader.ReadNext(&item, {});
      if (!more.ok()) return more.status();
      if (!*more) return Status::Ok();
    }
  }
};

TEST_F(ReaderFaults, AFileThatIsCutShortIsAnErrorOfEveryFormat) {
  const int before = ThreadsNow();
  for (const CutFile& file : CutFiles()) {
    for (const int threads : {1, 3}) {
      Write(file.name, file.whole.substr(0, file.whole.size() - file.cut));
      auto reader = Stack(file, threads);
      const Status end = End(*reader);
      EXPECT_EQ(end.code(), StatusCode::kBadData) << file.name << ": " << end.ToString();
      EXPECT_THAT(end.message(), HasSubstr(file.message)) << threads;
      EXPECT_THAT(end.message(), HasSubstr(folder() + "/" + file.name)) << threads;
      EXPECT_EQ(End(*reader).message(), end.message()) << "said again";
      // Made whole again, it is read again.
      Write(file.name, file.whole);
      ASSERT_TRUE(reader->ReInit().ok());
      EXPECT_TRUE(End(*reader).ok()) << file.name << ": " << End(*reader).ToString();
      reader.reset();
      EXPECT_EQ(ThreadsOnce(before), before) << file.name;
    }
  }
}

TEST_F(ReaderFaults, AReaderOfAnyFormatGoesAwayInTheMiddle) {
  const int before = ThreadsNow();
  for (const CutFile& file : CutFiles()) {
    Write(file.name, file.whole);
    for (const int items : {0, 1, 2}) {
      auto reader = Stack(file, 2);
      std::vector<LoDTensor> item;
      for (int i = 0; i < items; ++i) ASSERT_TRUE(*reader->ReadNext(&item, {})) << file.name;
      reader.reset();
      EXPECT_EQ(ThreadsOnce(before), before) << file.name;
    }
  }
}

TEST_F(ReaderFaults, AFileThatGoesAwayAfterItWasFoundIsNamed) {
  const int before = ThreadsNow();
  for (const CutFile& file : CutFiles()) {
    Write(file.name, file.whole);
    auto reader = Stack(file, 1);
    std::filesystem::remove(folder() + "/" + file.name);
    const Status end = End(*reader);
    EXPECT_EQ(end.code(), StatusCode::kNotFound) << file.name;
    EXPECT_THAT(end.message(), HasSubstr(folder() + "/" + file.name));
    reader.reset();
    EXPECT_EQ(ThreadsOnce(before), before);
  }
}

TEST_F(ReaderFaults, AReaderThatFailsOrGivesOtherShapesEndsEveryThread) {
  const int before = ThreadsNow();
  const std::vector<std::pair<RowScript, std::string>> scripts = {
      {{.fails_at = 13}, "rows: record 14: broken"},
      {{.misfits_at = 13}, "rows: record 14: output 0: wanted float32 [-1, 2], got float32 [1, 3]"}};
  for (const auto& [script, message] : scripts) {
    auto reader = ReadAhead(MakeRowReader("rows", 0, 100, script));
    EXPECT_EQ(End(*reader).message(), message);
    ASSERT_TRUE(reader->ReInit().ok());
    EXPECT_EQ(End(*reader).message(), message) << "in the next pass";
    reader.reset();
    EXPECT_EQ(ThreadsOnce(before), before);
  }
}

/// A file system of a few KiB; not there where this process may not mount one.
class TinyDisk {
 public:
  explicit TinyDisk(std::string folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    is_there_ = ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~TinyDisk() {
    if (is_there_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;
  bool is_there() const { return is_there_; }

 private:
  std::string folder_;
  bool is_there_ = false;
};

TEST_F(ReaderFaults, AFullDiskEndsTheWritingOfRecordsAndLeavesNothing) {
  const TinyDisk disk(folder() + "/disk");
  if (!disk.is_there()) GTEST_SKIP() << "this process may not mount a file system: " << std::strerror(errno);
  const std::string path = folder() + "/disk/cache.recordio";
  const int before = ThreadsNow();
  {
    auto reader = ReadAhead(MakeRowReader("rows", 0, 100000));
    RecordIOWriter writer = RecordIOWriter::Create(path).value();
    std::vector<LoDTensor> item;
    Status written;
    while (written.ok()) {
      ASSERT_TRUE(*reader->ReadNext(&item, {})) << "the disk is larger than thought";
      written = writer.Append(item);
    }
    EXPECT_EQ(written.code(), StatusCode::kIo);
    EXPECT_THAT(Shortened(written.message()), HasSubstr("disk/cache.recordio"));
    EXPECT_THAT(written.message(), HasSubstr("No space left on device"));
  }
  EXPECT_EQ(ThreadsOnce(before), before);
  EXPECT_TRUE(std::filesystem::is_empty(folder() + "/disk")) << "what was written is still there";
}

}  // namespace
}  // namespace millrace
