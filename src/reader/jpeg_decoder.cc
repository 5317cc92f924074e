#include "reader/jpeg_decoder.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <new>

// Behind <cstdio>, whose FILE it takes for granted.
#include <jpeglib.h>
// The numbers of libjpeg's messages.
#include <jerror.h>

namespace millrace {

struct JpegDecoder::State {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf back = {};              ///< where a failure within libjpeg goes on
  char message[JMSG_LENGTH_MAX] = {};  ///< what it said
};

namespace {

[[noreturn]] void FailDecoding(j_common_ptr info) {
  auto* state = static_cast<JpegDecoder::State*>(info->client_data);
  info->err->format_message(info, state->message);
  std::longjmp(state->back, 1);
}

// A level below 0 is a warning: libjpeg found the data damaged, and would go on with pixels that it made up.
void HeedWarning(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const bool is_harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
  if (level < 0 && !is_harmless) FailDecoding(info);
}

// Runs a step that libjpeg may leave by longjmp, so that nothing in it or here may need a destructor.
template <class Step>
bool Decoded(JpegDecoder::State* state, const Step& step) {
  if (setjmp(state->back) != 0) return false;
  step(state);
  return true;
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

Result<PictureSize> JpegDecoder::ReadHeader(const std::string& path, std::string_view bytes) {
  jpeg_abort_decompress(&state_->info);
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const size_t size = bytes.size();
  const bool read = Decoded(state_.get(), [data, size](State* state) {
    jpeg_mem_src(&state->info, data, size);
    jpeg_read_header(&state->info, TRUE);
  });
  if (!read) return Failure(path, "no JPEG picture");
  return PictureSize{static_cast<int>(state_->info.image_width), static_cast<int>(state_->info.image_height)};
}

Status JpegDecoder::ReadPixels(const std::string& path, int channels, uint8_t* pixels) {
  const bool read = Decoded(state_.get(), [channels, pixels](State* state) {
    jpeg_decompress_struct* info = &state->info;
    info->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(info);
    while (info->output_scanline < info->output_height) {
      JSAMPROW row = pixels + size_t{info->output_scanline} * info->output_width * static_cast<size_t>(channels);
      jpeg_read_scanlines(info, &row, 1);
    }
    jpeg_finish_decompress(info);
  });
  return read ? Status::Ok() : Failure(path, "the JPEG picture is damaged or not whole");
}

Status JpegDecoder::Failure(const std::string& path, const char* what) const {
  if (state_->errors.msg_code == JERR_OUT_OF_MEMORY) return Unavailable(path + ": no memory to decode the picture");
  return BadData(path + ": " + what + ": " + state_->message);
}

}  // namespace millrace
