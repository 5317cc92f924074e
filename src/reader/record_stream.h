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
};

/// Cuts a stream of bytes into frames. One thread at a time; allocates no more than twice of what the stream holds.
class RecordStream {
 public:
  /// A body of more than `most` bytes is an error, which ends in `advice`.
  RecordStream(std::unique_ptr<ByteSource> source, const Framing& framing, uint64_t most = UINT64_MAX,
               std::string advice = {});

  /// The next frame, valid until the next call; false at the end. kBadData (Error) when the stream ends within one, or
  /// holds something else; otherwise the source's failures.
  Result<bool> Next(RecordFrame* frame, const std::stop_token& stop);
  /// Whether Next would return without asking the source for bytes.
  bool HasNext() const;
  /// Waits, `most` at the longest, until the source has bytes; false when it still has none.
  bool WaitReadable(std::chrono::milliseconds most) { return source_->WaitReadable(most); }

  /// kBadData "byte 17: MESSAGE", of the header or body that was read last.
  Status Error(const std::string& message) const;
  /// Whether it was Error's failure that ended Next, and not one of the source, which says its place itself.
  bool is_damaged() const { return is_damaged_; }
  /// Whether it was no header that the stream began with: it may be of another format.
  bool is_foreign() const { return is_foreign_; }
  /// Whether bytes came behind the last frame that Next gave.
  bool is_within_frame() const { return offset_ > bytes_ || end_ > begin_; }
  /// Of all frames that Next gave.
  uint64_t bytes() const { return bytes_; }

 private:
  /// The next `size` bytes; empty (of a size above 0) at the end.
  Result<std::string_view> Read(uint64_t size, const char* what, const std::stop_token& stop);
  Status Damaged(const std::string& message);

  std::unique_ptr<ByteSource> source_;
  const Framing* framing_;
  uint64_t most_;
  std::string advice_;
  std::string buffer_;
  size_t begin_ = 0;  ///< of the bytes of buffer_ that nobody asked for yet
  size_t end_ = 0;
  uint64_t offset_ = 0;  ///< of begin_, in the stream
  uint64_t last_ = 0;    ///< of the last Read
  uint64_t bytes_ = 0;
  bool is_damaged_ = false;
  bool is_foreign_ = false;
};

}  // namespace millrace
