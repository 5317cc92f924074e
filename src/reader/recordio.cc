#include "reader/recordio.h"

#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "core/crc32.h"
#include "reader/byte_file.h"
#include "reader/line_file.h"
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

// As many records as Paddle's writer puts into a chunk, and no more bytes than one wants to lose to a wrong one.
constexpr uint32_t kChunkRecords = 1000;
constexpr size_t kChunkBytes = size_t{1} << 20;

class RecordIOReader final : public FileReader {
 public:
  RecordIOReader(std::string file, const std::vector<TensorSpec>& specs)
      : FileReader(file, specs), bytes_(std::move(file)) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    while (records_left_ == 0) {
      if (!chunk_.empty()) return bytes_.Error(std::to_string(chunk_.size()) + " bytes behind the chunk's last record");
      MR_ASSIGN(const bool more, ReadChunk(stop));
      if (!more) return false;
    }
    --records_left_;
    MR_ASSIGN(const uint32_t size, TakeNumber(&chunk_, "a record's size"));
    if (size > chunk_.size())
      return bytes_.Error("a record of " + std::to_string(size) + " bytes ends behind its chunk");
    const std::string_view record = chunk_.substr(0, size);
    chunk_.remove_prefix(size);
    MR_TRY(ReadTensors(record, out));
    return true;
  }

  Result<bool> ReadChunk(const std::stop_token& stop) {
    MR_ASSIGN(const std::string_view raw, bytes_.Read(sizeof(ChunkHeader), "the header of a chunk", stop));
    if (raw.empty()) return false;
    ChunkHeader header;
    std::memcpy(&header, raw.data(), sizeof(header));
    if (header.magic != kRecordIOMagic) return bytes_.Error("no RecordIO chunk begins here");
    if (header.compressor != 0) {
      const std::string name = header.compressor == 1 ? "snappy" : "number " + std::to_string(header.compressor);
      return bytes_.Error("the chunk is compressed (" + name +
                          "); write it without, and compress the file by gzip or zstd");
    }
    MR_ASSIGN(chunk_, bytes_.Read(header.bytes, "a chunk", stop));
    if (chunk_.size() < header.bytes) return bytes_.Error("the file ends behind the header of a chunk");
    if (Crc32(0, chunk_.data(), chunk_.size()) != header.crc32) {
      return bytes_.Error("the chunk's checksum is wrong: the file is damaged");
    }
    records_left_ = header.records;
    return true;
  }

  Result<uint32_t> TakeNumber(std::string_view* bytes, const char* what) const {
    uint32_t number = 0;
    if (bytes->size() < sizeof(number)) return bytes_.Error(std::string("the chunk ends within ") + what);
    std::memcpy(&number, bytes->data(), sizeof(number));
    bytes->remove_prefix(sizeof(number));
    return number;
  }

  Status ReadTensors(std::string_view record, std::vector<LoDTensor>* out) const {
    MR_ASSIGN(const uint32_t tensors, TakeNumber(&record, "the number of tensors of a record"));
    // FileReader says what is wrong with their number.
    if (tensors != out->size()) {
      out->resize(std::min<size_t>(tensors, out->size() + 1));
      return Status::Ok();
    }
    for (LoDTensor& tensor : *out) {
      MR_ASSIGN(const size_t taken, ReadLoDTensor(record, bytes_.path(), &tensor.values, &tensor.lod));
      record.remove_prefix(taken);
    }
    return record.empty() ? Status::Ok()
                          : bytes_.Error(std::to_string(record.size()) + " bytes behind a record's last tensor");
  }

  Status Rewind() override {
    bytes_.Rewind();
    chunk_ = {};
    records_left_ = 0;
    return Status::Ok();
  }

  ByteFile bytes_;
  std::string_view chunk_;  ///< what is left of it, in bytes_
  uint32_t records_left_ = 0;
};

Result<std::unique_ptr<FileReader>> OpenRecordIO(const std::string& file, const std::vector<TensorSpec>& specs) {
  MR_TRY(CheckReadable(file));
  return std::unique_ptr<FileReader>(std::make_unique<RecordIOReader>(file, specs));
}

void AppendNumber(uint32_t number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

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
  AppendNumber(0, &chunk_);  // the record's size, known below
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
