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

/// How the files of a binary format are cut: into frames, each a header of a fixed size, which says how long the body
/// behind it is. Failures are kBadData without a place.
struct Framing {
  const char* format;  ///< "tfrecord"
  size_t header_size;
  const char* header;  ///< what messages call it: "the length of a record"
  const char* body;    ///< likewise, "a record"
  /// Reads the size of the body.
  Result<uint64_t> (*body_size)(std::string_view header);
  /// Of formats whose bodies hold records behind their sizes (TakeSized): how many, all of them verified to lie within
  /// the body, and to fill it. Null: a body is a record.
  Result<uint32_t> (*count_records)(std::string_view header, std::string_view body);
};

/// A body, and how many records it holds.
struct RecordFrame {
  std::string_view body;
  uint32_t records = 1;
  bool has_sizes = false;  ///< the records stand behind their sizes (TakeSized); otherwise the body is the record
};

/// Gives the records of a file, one frame after another. One thread at a time.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// The next frame, valid until the next call; false at the end. A failure is the last call.
  virtual Result<bool> Next(RecordFrame* frame, const std::stop_token& stop) = 0;
  /// Whether Next is known to return without asking for bytes.
  virtual bool HasNext() const = 0;
  /// Waits, `most` at the longest, until there are bytes to ask for; false when there still are none.
  virtual bool WaitReadable(std::chrono::milliseconds most) = 0;
  /// Whether it was what the bytes hold that ended Next, and not that they did not come.
  virtual bool is_damaged() const = 0;
  /// Whether bytes came behind the last frame that Next gave.
  virtual bool is_within_frame() const = 0;
  /// Of all frames that Next gave.
  virtual uint64_t bytes() const = 0;
};

/// Cuts a stream of bytes into frames. One thread at a time; allocates no more than twice of what the stream holds.
class RecordStream final : public RecordSource {
 public:
  /// A body of more than `most` bytes is an error, which ends in `advice`. `doubt` ends the message about a stream that
  /// begins with no header: it may be of another format.
  RecordStream(std::unique_ptr<ByteSource> source, const Framing& framing, uint64_t most = UINT64_MAX,
               std::string advice = {}, std::string doubt = {});

  /// kBadData (Error) when the stream ends within a frame, or holds something else; otherwise the source's failures.
  Result<bool> Next(RecordFrame* frame, const std::stop_token& stop) override;
  bool HasNext() const override;
  bool WaitReadable(std::chrono::milliseconds most) override { return source_->WaitReadable(most); }

  /// kBadData "byte 17: MESSAGE", of the header or body that was read last.
  Status Error(const std::string& message) const;
  /// Whether it was Error's failure; one of the source says its place itself.
  bool is_damaged() const override { return is_damaged_; }
  bool is_within_frame() const override { return offset_ > bytes_ || end_ > begin_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  /// The next `size` bytes; empty (of a size above 0) at the end.
  Result<std::string_view> Read(uint64_t size, const char* what, const std::stop_token& stop);
  Status Damaged(const std::string& message);

  std::unique_ptr<ByteSource> source_;
  const Framing* framing_;
  uint64_t most_;
  std::string advice_;
  std::string doubt_;
  std::string buffer_;
  size_t begin_ = 0;  ///< of the bytes of buffer_ that nobody asked for yet
  size_t end_ = 0;
  uint64_t offset_ = 0;  ///< of begin_, in the stream
  uint64_t last_ = 0;    ///< of the last Read
  uint64_t bytes_ = 0;
  bool is_damaged_ = false;
};

}  // namespace millrace
