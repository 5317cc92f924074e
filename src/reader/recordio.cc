#include "reader/recordio.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "core/crc32.h"
#include "core/line_blocks.h"
#include "reader/line_file.h"
#include "reader/record_file.h"
#include "runtime/lod_tensor_codec.h"

namespace millrace {
namespace {

constexpr uint32_t kRecordIOMagic = 0x01020304;

struct ChunkHeader {
  uint32_t magic = kRecordIOMagic;
  uint32_t records = 0;
  uint32_t crc32 = 0;
  uint32_t compressor = 0;  ///< 0: none, 1: snappy, 2: gzip
  uint32_t bytes = 0;
};
static_assert(sizeof(ChunkHeader) == 20);

// The record count is that of Paddle's writer. The byte limit bounds the loss if a chunk is damaged.
constexpr uint32_t kChunkRecords = 1000;
constexpr size_t kChunkBytes = size_t{1} << 20;

/// Takes a uint32 off the front of `bytes`.
Result<uint32_t> TakeNumber(std::string_view* bytes, const char* what) {
  uint32_t number = 0;
  if (bytes->size() < sizeof(number)) return BadData(std::string("the chunk ends within ") + what);
  bytes->copy(reinterpret_cast<char*>(&number), sizeof(number));
  bytes->remove_prefix(sizeof(number));
  return number;
}

Result<uint64_t> ChunkSize(std::string_view bytes) {
  ChunkHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kRecordIOMagic) return BadData("no RecordIO chunk begins here");
  if (header.compressor == 0) return header.bytes;
  const std::string name = header.compressor == 1 ? "snappy" : "number " + std::to_string(header.compressor);
  return BadData("the chunk is compressed (" + name + "); write it without, and compress the file by gzip or zstd");
}

Result<uint32_t> CountRecords(std::string_view bytes, std::string_view chunk) {
  ChunkHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (Crc32(0, chunk.data(), chunk.size()) != header.crc32) {
    return BadData("the chunk's checksum is wrong: the file is damaged");
  }
  for (uint32_t i = 0; i < header.records; ++i) {
    MR_ASSIGN(const uint32_t size, TakeNumber(&chunk, "a record's size"));
    if (size > chunk.size()) return BadData("a record of " + std::to_string(size) + " bytes ends behind its chunk");
    chunk.remove_prefix(size);
  }
  if (!chunk.empty()) return BadData(std::to_string(chunk.size()) + " bytes behind the chunk's last record");
  return header.records;
}

class RecordIOReader final : public FileReader {
 public:
  RecordIOReader(std::string file, const std::vector<TensorSpec>& specs)
      : FileReader(file, specs), chunks_(std::move(file), kRecordIOFraming) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    while (chunk_.records == 0) {
      MR_ASSIGN(const bool more, chunks_.Next(&chunk_, stop));
      if (!more) return AtEnd();
    }
    --chunk_.records;
    MR_TRY(ReadTensors(TakeSized(&chunk_.body), Where(), out));
    return true;
  }

  bool AtEnd() {
    chunk_ = {.body = {}, .records = 0};
    return false;
  }

  Status Rewind() override {
    chunks_.Rewind();
    AtEnd();
    return Status::Ok();
  }

  RecordFile chunks_;
  RecordFrame chunk_ = {.body = {}, .records = 0};  ///< unread rest of the chunk
};

Result<std::unique_ptr<FileReader>> OpenRecordIO(const std::string& file, const std::vector<TensorSpec>& specs) {
  MR_TRY(CheckReadable(file));
  return std::unique_ptr<FileReader>(std::make_unique<RecordIOReader>(file, specs));
}

void AppendNumber(uint32_t number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

const Framing kRecordIOFraming = {"recordio", sizeof(ChunkHeader), "the header of a chunk",
                                  "a chunk",  ChunkSize,           CountRecords};

Status ReadTensors(std::string_view record, std::string_view origin, std::vector<LoDTensor>* tensors) {
  MR_ASSIGN(const uint32_t count, TakeNumber(&record, "the number of tensors of a record").Context(origin));
  // The caller reports a wrong number.
  if (count != tensors->size()) {
    tensors->resize(std::min<size_t>(count, tensors->size() + 1));
    return Status::Ok();
  }
  for (LoDTensor& tensor : *tensors) {
    MR_ASSIGN(const size_t taken, ReadLoDTensor(record, origin, &tensor.values, &tensor.lod));
    record.remove_prefix(taken);
  }
  if (record.empty()) return Status::Ok();
  return BadData(std::string(origin) + ": " + std::to_string(record.size()) + " bytes behind a record's last tensor");
}

FileFormat RecordIOFormat() {
  return {"recordio",
          {".recordio"},
          "serialized tensors, as Paddle's convert_reader_to_recordio_file writes them",
          OpenRecordIO};
}

Result<RecordIOWriter> RecordIOWriter::Create(const std::string& path) {
  MR_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  return RecordIOWriter(std::move(file));
}

Status RecordIOWriter::Append(const std::vector<LoDTensor>& record) {
  const size_t start = chunk_.size();
  AppendNumber(0, &chunk_);  // the record's size, set below
  AppendNumber(static_cast<uint32_t>(record.size()), &chunk_);
  for (const LoDTensor& tensor : record) {
    Tensor view;
    view.ViewOf(tensor.values, tensor.values.dims());
    view.set_lod(tensor.lod);
    AppendLoDTensor(view, &chunk_);
  }
  const auto size = static_cast<uint32_t>(chunk_.size() - start - sizeof(uint32_t));
  std::memcpy(chunk_.data() + start, &size, sizeof(size));
  ++records_;
  ++chunk_records_;
  return chunk_records_ == kChunkRecords || chunk_.size() >= kChunkBytes ? WriteChunk() : Status::Ok();
}

Status RecordIOWriter::WriteChunk() {
  if (chunk_records_ == 0) return Status::Ok();
  ChunkHeader header;
  header.records = std::exchange(chunk_records_, 0);
  header.crc32 = Crc32(0, chunk_.data(), chunk_.size());
  header.bytes = static_cast<uint32_t>(chunk_.size());
  MR_TRY(file_.Append({reinterpret_cast<const char*>(&header), sizeof(header)}));
  MR_TRY(file_.Append(chunk_));
  chunk_.clear();
  return Status::Ok();
}

Status RecordIOWriter::Finish() {
  MR_TRY(WriteChunk());
  return file_.Commit();
}

}  // namespace millrace
