#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/status.h"
#include "reader/reader_registry.h"
#include "reader/record_stream.h"

namespace millrace {

/// How RecordIO files are cut: chunks with a CRC-32 of their records, each of which is the bytes of tensors.
extern const Framing kRecordIOFraming;

/// Reads the tensors of a record, as many as `tensors` has; of a record of another number of them, `tensors` gets
/// another size, and that is all. kBadData that begins with `origin`.
Status ReadTensors(std::string_view record, std::string_view origin, std::vector<LoDTensor>* tensors);

/// Paddle's RecordIO files, chunks of records of serialized tensors (docs/formats/recordio.md). Records carry their
/// types and shapes; a chunk that is cut short, or whose checksum is wrong, is kBadData with file and byte.
FileFormat RecordIOFormat();

/// Writes a RecordIO file, which appears under its name at Finish, synced, or never.
class RecordIOWriter {
 public:
  static Result<RecordIOWriter> Create(const std::string& path);
  RecordIOWriter(RecordIOWriter&&) noexcept = default;
  RecordIOWriter& operator=(RecordIOWriter&&) = delete;

  /// Appends a record of these tensors. kIo with the system's reason (a full disk).
  Status Append(const std::vector<LoDTensor>& record);
  Status Finish();
  uint64_t records() const { return records_; }

 private:
  explicit RecordIOWriter(AtomicFile file) : file_(std::move(file)) {}
  Status WriteChunk();

  AtomicFile file_;
  std::string chunk_;
  uint32_t chunk_records_ = 0;
  uint64_t records_ = 0;
};

}  // namespace millrace
