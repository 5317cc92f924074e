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

/// RecordIO framing: chunks with a CRC-32 over their records; a record is the bytes of tensors.
extern const Framing kRecordIOFraming;

/// Parses the tensors of a record into `tensors`. If the record has another number of tensors, only changes the size of
/// `tensors`. Fails with kBadData starting with `origin` for a malformed record.
Status ReadTensors(std::string_view record, std::string_view origin, std::vector<LoDTensor>* tensors);

/// Paddle's RecordIO files: chunks of records of serialized tensors (docs/formats/recordio.md). Records contain types
/// and shapes. A truncated chunk or a wrong checksum fails with kBadData, naming file and byte.
FileFormat RecordIOFormat();

/// Writes a RecordIO file, which appears at Finish, synced, or not at all.
class RecordIOWriter {
 public:
  /// Fails with kIo if the file cannot be created.
  static Result<RecordIOWriter> Create(const std::string& path);
  RecordIOWriter(RecordIOWriter&&) noexcept = default;
  RecordIOWriter& operator=(RecordIOWriter&&) = delete;

  /// Appends a record of these tensors. Fails with kIo and the system's reason, for example a full disk.
  Status Append(const std::vector<LoDTensor>& record);
  /// Fails with kIo if the file cannot be written or renamed.
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
