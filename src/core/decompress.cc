#include "core/decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "core/file.h"

namespace millrace {
namespace {

constexpr size_t kPackedBuffer = size_t{256} << 10;
constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr size_t kBzip2Magic = 10;  ///< the longest known one

/// Compressed bytes that were read but not yet processed.
class PackedInput {
 public:
  explicit PackedInput(std::unique_ptr<ByteSource> source) : source_(std::move(source)), buffer_(kPackedBuffer) {}

  std::span<char> rest() { return {buffer_.data() + begin_, end_ - begin_}; }
  void Consume(size_t bytes) { begin_ += bytes; }

  /// Appends to rest(); false at the end of the source.
  Result<bool> Fill(const std::stop_token& stop) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
    }
    MR_ASSIGN(const size_t n, source_->Read(std::span(buffer_).subspan(end_), stop));
    end_ += n;
    return n > 0;
  }
  bool WaitReadable(std::chrono::milliseconds most) { return begin_ < end_ || source_->WaitReadable(most); }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

/// Decompresses one format. Unpack moves bytes from `in` to `out` and returns both counts.
struct Progress {
  size_t taken = 0;
  size_t made = 0;
};

class GzipUnpacker {
 public:
  explicit GzipUnpacker(std::string name) : name_(std::move(name)) {
    // 15 + 16: the largest window, only gz headers. inflateInit2 fails only without memory.
    ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~GzipUnpacker() { inflateEnd(&stream_); }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;

  Result<Progress> Unpack(std::span<char> in, std::span<char> out) {
    if (!ready_) return Internal(name_ + ": gzip: cannot start to unpack");
    if (!in_member_) {
      // Zeros may pad the end of a gz file (tapes, block devices); gzip also ignores them.
      size_t zeros = 0;
      if (members_ > 0) {
        while (zeros < in.size() && in[zeros] == '\0') ++zeros;
      }
      if (zeros > 0) return Progress{zeros, 0};
      inflateReset(&stream_);
      in_member_ = true;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(in.data());
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(std::min(out.size(), size_t{1} << 30));
    const uInt room = stream_.avail_out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      in_member_ = false;
      ++members_;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return BadData(name_ + ": gzip: invalid data: " + (stream_.msg != nullptr ? stream_.msg : "not a gz stream"));
    }
    return Progress{in.size() - stream_.avail_in, room - stream_.avail_out};
  }

  Status AtEnd() const { return in_member_ ? BadData(name_ + ": gzip: unexpected end of file") : Status::Ok(); }

 private:
  std::string name_;
  z_stream stream_{};
  bool ready_ = false;
  bool in_member_ = false;
  int64_t members_ = 0;
};

class ZstdUnpacker {
 public:
  explicit ZstdUnpacker(std::string name) : name_(std::move(name)), stream_(ZSTD_createDStream()) {}
  ~ZstdUnpacker() { ZSTD_freeDStream(stream_); }
  ZstdUnpacker(const ZstdUnpacker&) = delete;
  ZstdUnpacker& operator=(const ZstdUnpacker&) = delete;

  Result<Progress> Unpack(std::span<char> in, std::span<char> out) {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const size_t code = ZSTD_decompressStream(stream_, &output, &input);
    if (ZSTD_isError(code) != 0) {
      return BadData(name_ + ": zstd: invalid data: " + ZSTD_getErrorName(code));
    }
    in_frame_ = code != 0;
    return Progress{input.pos, output.pos};
  }

  Status AtEnd() const { return in_frame_ ? BadData(name_ + ": zstd: unexpected end of file") : Status::Ok(); }

 private:
  std::string name_;
  ZSTD_DStream* stream_;
  bool in_frame_ = false;
};

template <class Unpacker>
class UnpackingSource final : public ByteSource {
 public:
  UnpackingSource(PackedInput input, std::string name) : input_(std::move(input)), unpacker_(std::move(name)) {}

  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    for (;;) {
      // At the end of the input the decompressor may still have output, so call it once more.
      if (!input_.rest().empty() || at_end_) {
        MR_ASSIGN(const Progress progress, unpacker_.Unpack(input_.rest(), out));
        input_.Consume(progress.taken);
        if (progress.made > 0) return progress.made;
        if (progress.taken > 0 && !input_.rest().empty()) continue;
        if (at_end_) {
          MR_TRY(unpacker_.AtEnd());
          return size_t{0};
        }
      }
      MR_ASSIGN(const bool more, input_.Fill(stop));
      if (!more) {
        at_end_ = true;
        if (unpacker_.AtEnd().ok() && input_.rest().empty()) return size_t{0};
      }
    }
  }
  bool WaitReadable(std::chrono::milliseconds most) override { return at_end_ || input_.WaitReadable(most); }

 private:
  PackedInput input_;
  Unpacker unpacker_;
  bool at_end_ = false;
};

/// Delivers the bytes read for detection, then the rest of the source.
class PassThroughSource final : public ByteSource {
 public:
  explicit PassThroughSource(PackedInput input) : input_(std::move(input)) {}
  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    if (input_.rest().empty()) {
      MR_ASSIGN(const bool more, input_.Fill(stop));
      if (!more) return size_t{0};
    }
    const size_t n = std::min(out.size(), input_.rest().size());
    std::memcpy(out.data(), input_.rest().data(), n);
    input_.Consume(n);
    return n;
  }
  bool WaitReadable(std::chrono::milliseconds most) override { return input_.WaitReadable(most); }

 private:
  PackedInput input_;
};

/// Waits for the first bytes, then becomes the matching source.
class DetectingSource final : public ByteSource {
 public:
  DetectingSource(std::unique_ptr<ByteSource> packed, std::string name)
      : input_(std::move(packed)), name_(std::move(name)) {}

  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    if (inner_ == nullptr) MR_TRY(Detect(stop));
    return inner_->Read(out, stop);
  }
  bool WaitReadable(std::chrono::milliseconds most) override {
    return inner_ == nullptr ? input_.WaitReadable(most) : inner_->WaitReadable(most);
  }

 private:
  Status Detect(const std::stop_token& stop) {
    while (input_.rest().size() < 4) {
      MR_ASSIGN(const bool more, input_.Fill(stop));
      if (!more) break;
    }
    const std::string_view first(input_.rest().data(), input_.rest().size());
    MR_TRY(CheckPackedHasBytes(first, name_));
    if (IsCutWithin(first, kGzipMagic, ".gz")) return BadData(name_ + ": gzip: unexpected end of file");
    if (IsCutWithin(first, kZstdMagic, ".zst")) return BadData(name_ + ": zstd: unexpected end of file");
    switch (DetectCompression(first)) {
      case Compression::kGzip:
        inner_ = std::make_unique<UnpackingSource<GzipUnpacker>>(std::move(input_), name_);
        break;
      case Compression::kZstd:
        inner_ = std::make_unique<UnpackingSource<ZstdUnpacker>>(std::move(input_), name_);
        break;
      case Compression::kNone: inner_ = std::make_unique<PassThroughSource>(std::move(input_)); break;
    }
    return Status::Ok();
  }

  /// Whether a file ends within the magic bytes that its name requires.
  bool IsCutWithin(std::string_view bytes, std::string_view magic, std::string_view suffix) const {
    return !bytes.empty() && bytes.size() < magic.size() && magic.starts_with(bytes) && name_.ends_with(suffix);
  }

  PackedInput input_;
  std::string name_;
  std::unique_ptr<ByteSource> inner_;
};

}  // namespace

Status CheckPackedHasBytes(std::string_view first_bytes, const std::string& name) {
  if (!first_bytes.empty() || !(name.ends_with(".gz") || name.ends_with(".zst"))) return Status::Ok();
  return BadData(name + ": the file has no byte, and what is packed has some, however empty: it was cut short");
}

Compression DetectCompression(std::string_view first_bytes) {
  if (first_bytes.starts_with(kGzipMagic)) return Compression::kGzip;
  if (first_bytes.starts_with(kZstdMagic)) return Compression::kZstd;
  return Compression::kNone;
}

std::string_view ForeignUnpacker(std::string_view first_bytes) {
  if (first_bytes.starts_with("\xfd\x37\x7a\x58")) return "xz -dc";
  if (first_bytes.starts_with("\x04\x22\x4d\x18")) return "lz4 -dc";
  if (first_bytes.starts_with("PK\x03\x04")) return "funzip";
  // A line can start with "BZh1". It is followed by a block's mark, or for empty content by the end's.
  const bool is_bzip2 = first_bytes.starts_with("BZh") && first_bytes.size() >= kBzip2Magic && first_bytes[3] > '0' &&
                        first_bytes[3] <= '9' &&
                        (first_bytes.substr(4).starts_with("\x31\x41\x59\x26\x53\x59") ||
                         first_bytes.substr(4).starts_with("\x17\x72\x45\x38\x50\x90"));
  return is_bzip2 ? "bzip2 -dc" : "";
}

Result<std::string> ReadFirstBytes(const std::string& path) {
  MR_ASSIGN(const std::unique_ptr<ByteSource> file, OpenFile(path));
  std::array<char, kBzip2Magic> first{};
  size_t filled = 0;
  while (filled < first.size()) {
    MR_ASSIGN(const size_t n, file->Read(std::span(first).subspan(filled), {}));
    if (n == 0) break;
    filled += n;
  }
  return std::string(first.data(), filled);
}

std::unique_ptr<ByteSource> Decompress(std::unique_ptr<ByteSource> packed, std::string name) {
  return std::make_unique<DetectingSource>(std::move(packed), std::move(name));
}

}  // namespace millrace
