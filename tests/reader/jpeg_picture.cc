#include "reader/jpeg_picture.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

// Behind <cstdio>, whose FILE it takes for granted.
#include <jpeglib.h>

namespace millrace {

bool HasJpeg() { return true; }

std::string JpegPicture(int width, int height, int channels, const std::function<int(int, int, int)>& value,
                        const JpegKind& kind) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);  // which ends the process: the test's pictures are good ones
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  for (int i = 0; i < info.num_components; ++i) {
    const bool is_halved = kind.subsampled && channels == 3 && i == 0;
    info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = is_halved ? 2 : 1;
  }
  info.restart_in_rows = kind.restart_rows;
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<JSAMPLE> row(static_cast<size_t>(width * channels));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c)
        row[static_cast<size_t>(x * channels + c)] = static_cast<JSAMPLE>(value(x, y, c));
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string picture(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return picture;
}

std::vector<uint8_t> PixelsByLibjpeg(const std::string& picture, int channels) {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(picture.data()), picture.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  const size_t row_size = size_t{info.output_width} * static_cast<size_t>(channels);
  std::vector<uint8_t> pixels(row_size * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data() + row_size * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return pixels;
}

}  // namespace millrace
