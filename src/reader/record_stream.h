#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/byte_source.h"
#include "core/status.h"

namespace millrace {

/// Frame layout of a binary format: each frame is a header of fixed size, which contains the length of the following
/// body. Failures are kBadData without a position.
struct Framing {
  const char* format;  ///< "tfrecord"
  size_t header_size;
  const char* header;  ///< name in messages: "the length of a record"
  const char* body;    ///< name in messages: "a record"
  /// Reads the size of the body. Fails with kBadData for an invalid header.
  Result<uint64_t> (*body_size)(std::string_view header);
  /// For formats whose bodies contain several records, each after its size (TakeSized): verifies that they exactly fill
  /// the body and returns their number; kBadData otherwise. Null: a body is one record.
  Result<uint32_t> (*count_records)(std::string_view header, std::string_view body);
};

/// A body and its number of records.
struct RecordFrame {
  std::string_view body;
  uint32_t records = 1;
  bool has_sizes = false;  ///< records follow their sizes (TakeSized); otherwise the body is one record
};

/// Delivers the records of a file, frame by frame. One thread at a time.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// The next frame, valid until the next call; false at the end. Must not be called again after a failure: kBadData
  /// for damaged content, kCancelled after a stop request, else the byte source's.
  virtual Result<bool> Next(RecordFrame* frame, const std::stop_token& stop) = 0;
  /// Whether Next can return without reading bytes.
  virtual bool HasNext() const = 0;
  /// Waits up to `most` for input; false if there still is none.
  virtual bool WaitReadable(std::chrono::milliseconds most) = 0;
  /// Whether Next failed because of the content, not because of reading.
  virtual bool is_damaged() const = 0;
  /// Whether there were bytes after the last frame.
  virtual bool is_within_frame() const = 0;
  /// Total bytes of the frames delivered.
  virtual uint64_t bytes() const = 0;
};

/// Splits a byte stream into frames. One thread at a time; allocates at most twice the size of the stream's content.
class RecordStream final : public RecordSource {
 public:
  /// A body of more than `most` bytes is an error whose message ends with `advice`. `doubt` ends the message for a
  /// stream that does not start with a header and may have another format.
  RecordStream(std::unique_ptr<ByteSource> source, const Framing& framing, uint64_t most = UINT64_MAX,
               std::string advice = {}, std::string doubt = {});

  /// Fails with kBadData (Error) if the stream ends within a frame or is malformed; otherwise with the source's
  /// failures.
  Result<bool> Next(RecordFrame* frame, const std::stop_token& stop) override;
  bool HasNext() const override;
  bool WaitReadable(std::chrono::milliseconds most) override { return source_->WaitReadable(most); }

  /// Returns kBadData "byte 17: MESSAGE" for the last header or body.
  Status Error(const std::string& message) const;
  /// Whether Error caused the failure; the source's failures contain their own position.
  bool is_damaged() const override { return is_damaged_; }
  bool is_within_frame() const override { return offset_ > bytes_ || end_ > begin_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  /// The next `size` bytes; empty (for a size above 0) at the end.
  Result<std::string_view> Read(uint64_t size, const char* what, const std::stop_token& stop);
  Status Damaged(const std::string& message);

  std::unique_ptr<ByteSource> source_;
  const Framing* framing_;
  uint64_t most_;
  std::string advice_;
  std::string doubt_;
  std::string buffer_;
  size_t begin_ = 0;  ///< start of the unread bytes of buffer_
  size_t end_ = 0;
  uint64_t offset_ = 0;  ///< position of begin_ in the stream
  uint64_t last_ = 0;    ///< position of the last Read
  uint64_t bytes_ = 0;
  bool is_damaged_ = false;
};

}  // namespace millrace
