#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace millrace {

/// Whether this build reads JPEG pictures (MILLRACE_JPEG). Without, the functions below may not be called.
bool HasJpeg();

/// How a picture is stored.
struct JpegKind {
  bool progressive = false;
  bool subsampled = false;  ///< colours have half the width and height
  int restart_rows = 0;     ///< rows of blocks between two restart markers; 0: none
};

/// A JPEG picture made by libjpeg: `channels` values a pixel (1: grey, 3: red, green, blue; 4: inks), of the best
/// quality, so that without subsampling decoded values are off by little. `value(x, y, channel)` is what it shows.
std::string JpegPicture(int width, int height, int channels, const std::function<int(int, int, int)>& value,
                        const JpegKind& kind = {});

/// What libjpeg by itself makes of a picture, as its manual shows it: rows of pixels of `channels` values.
std::vector<uint8_t> PixelsByLibjpeg(const std::string& picture, int channels);

}  // namespace millrace
