#include "reader/jpeg_decoder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>

#include "core/decompress.h"
#include "core/file.h"

// Must follow <cstdio>, because it needs FILE.
#include <jpeglib.h>
// libjpeg's message numbers.
#include <jerror.h>

namespace millrace {

struct JpegDecoder::State {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf back = {};              ///< where control returns after a failure in libjpeg
  char message[JMSG_LENGTH_MAX] = {};  ///< its message
  size_t file_size = 0;
};

namespace {

/// Size of the first read; most pictures are smaller.
constexpr size_t kFirstRead = size_t{64} << 10;
/// libjpeg checks for the end if less than 512 bytes remain for each of the 10 blocks that it may decode at once.
constexpr size_t kBehindFile = 10 * 512 + 16;
constexpr std::array<unsigned char, kBehindFile> kEndsOfPicture = [] {
  std::array<unsigned char, kBehindFile> bytes = {};
  for (size_t i = 0; i < kBehindFile; ++i) bytes[i] = static_cast<unsigned char>(i % 2 == 0 ? 0xff : JPEG_EOI);
  return bytes;
}();
constexpr size_t kRowsAtOnce = 4;

[[noreturn]] void FailDecoding(j_common_ptr info) {
  auto* state = static_cast<JpegDecoder::State*>(info->client_data);
  info->err->format_message(info, state->message);
  std::longjmp(state->back, 1);
}

// A negative level is a warning: the data is damaged, and libjpeg would continue with invented pixels.
void HeedWarning(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const bool is_harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
  if (level < 0 && !is_harmless) FailDecoding(info);
}

// Runs a step that libjpeg can leave by longjmp, so nothing in it or here may need a destructor.
template <class Step>
[[gnu::noinline]] bool Decoded(JpegDecoder::State* state, const Step& step) {
  if (setjmp(state->back) != 0) return false;
  step(state);
  return true;
}

/// Splits four-byte pixels, red first.
template <class T>
void CopyToPlanes(const unsigned char* __restrict pixels, size_t count, T* planes, size_t plane) {
  T* const __restrict red = planes;
  T* const __restrict green = planes + plane;
  T* const __restrict blue = planes + 2 * plane;
  for (size_t i = 0; i < count; ++i) {
    uint32_t pixel = 0;
    std::memcpy(&pixel, pixels + 4 * i, sizeof(pixel));
    red[i] = static_cast<T>(static_cast<int32_t>(pixel & 255));
    green[i] = static_cast<T>(static_cast<int32_t>(pixel >> 8 & 255));
    blue[i] = static_cast<T>(static_cast<int32_t>(pixel >> 16 & 255));
  }
}

}  // namespace

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {
  state_->info.err = jpeg_std_error(&state_->errors);
  state_->errors.error_exit = FailDecoding;
  state_->errors.emit_message = HeedWarning;
  state_->info.client_data = state_.get();
  if (!Decoded(state_.get(), [](State* state) { jpeg_create_decompress(&state->info); })) throw std::bad_alloc();
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->info); }

Status JpegDecoder::ReadBytes(const std::string& path) {
  MR_ASSIGN(const FileDescriptor file, OpenForReading(path));
  size_t filled = 0;
  for (;;) {
    if (bytes_.size() <= filled + kBehindFile) bytes_.resize(std::max(kFirstRead, 2 * filled) + kBehindFile);
    const ssize_t n = ::read(file.get(), bytes_.data() + filled, bytes_.size() - kBehindFile - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoErrorFromErrno(path + ": read", errno);
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  state_->file_size = filled;
  return Status::Ok();
}

Result<PictureSize> JpegDecoder::ReadHeader(const std::string& path) {
  MR_TRY(ReadBytes(path));
  return HeaderOfBytes(path);
}

Result<PictureSize> JpegDecoder::ReadHeader(const std::string& path, std::string_view bytes) {
  if (bytes_.size() < bytes.size() + kBehindFile) bytes_.resize(bytes.size() + kBehindFile);
  std::memcpy(bytes_.data(), bytes.data(), bytes.size());
  state_->file_size = bytes.size();
  return HeaderOfBytes(path);
}

Result<PictureSize> JpegDecoder::HeaderOfBytes(const std::string& path) {
  jpeg_abort_decompress(&state_->info);
  const unsigned char* data = bytes_.data();
  const bool read = Decoded(state_.get(), [data](State* state) {
    jpeg_mem_src(&state->info, data, state->file_size);
    jpeg_read_header(&state->info, TRUE);
  });
  const std::string_view bytes(reinterpret_cast<const char*>(data), state_->file_size);
  if (!read && DetectCompression(bytes) != Compression::kNone) {
    return BadData(path + ": the file is packed, and pictures are read as they are: unpack it");
  }
  if (!read) return Failure(path, "no JPEG picture");
  return PictureSize{static_cast<int>(state_->info.image_width), static_cast<int>(state_->info.image_height)};
}

template <class T>
Status JpegDecoder::ReadPlanes(const std::string& path, int channels, T* planes) {
  State* const state = state_.get();
  jpeg_decompress_struct* const info = &state->info;
  // libjpeg decodes faster while it need not check for the end. The bytes after the file are end markers, so it stops
  // there if the file is truncated.
  unsigned char* const end = bytes_.data() + state->file_size;
  std::memcpy(end, kEndsOfPicture.data(), kBehindFile);
  info->src->bytes_in_buffer += kBehindFile;
  // Words of red, green, blue and padding are split faster than three bytes.
  const size_t pixel_bytes = channels == 1 ? 1 : 4;
  const size_t row_bytes = info->image_width * pixel_bytes;
  rows_.resize(kRowsAtOnce * row_bytes);
  unsigned char* const pixels = rows_.data();
  const bool read = Decoded(state, [=](State*) {
    info->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX;
    jpeg_start_decompress(info);
    const size_t plane = size_t{info->output_width} * info->output_height;
    JSAMPROW rows[kRowsAtOnce];
    for (size_t i = 0; i < kRowsAtOnce; ++i) rows[i] = pixels + i * row_bytes;
    while (info->output_scanline < info->output_height) {
      const size_t done = size_t{info->output_scanline} * info->output_width;
      const size_t count = size_t{jpeg_read_scanlines(info, rows, kRowsAtOnce)} * info->output_width;
      if (channels == 1) {
        for (size_t i = 0; i < count; ++i) planes[done + i] = static_cast<T>(pixels[i]);
      } else {
        CopyToPlanes(pixels, count, planes + done, plane);
      }
    }
    jpeg_finish_decompress(info);
  });
  if (info->src->next_input_byte > end && (read || state->errors.msg_code != JERR_OUT_OF_MEMORY)) {
    // It was complete, or damaged, only together with the bytes after the file.
    return BadData(path + ": the JPEG picture is damaged or not whole: Premature end of JPEG file");
  }
  return read ? Status::Ok() : Failure(path, "the JPEG picture is damaged or not whole");
}

template Status JpegDecoder::ReadPlanes(const std::string&, int, uint8_t*);
template Status JpegDecoder::ReadPlanes(const std::string&, int, float*);

Status JpegDecoder::Failure(const std::string& path, const char* what) const {
  if (state_->errors.msg_code == JERR_OUT_OF_MEMORY) return Unavailable(path + ": no memory to decode the picture");
  return BadData(path + ": " + what + ": " + state_->message);
}

}  // namespace millrace
