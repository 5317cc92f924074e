#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace millrace {

/// A JPEG picture made by libjpeg: `channels` values a pixel (1: grey, 3: red, green, blue; 4: inks), of the best
/// quality and without subsampling, so that decoded values are off by little. `value(x, y, channel)` is what it shows.
std::string JpegPicture(int width, int height, int channels, const std::function<int(int, int, int)>& value,
                        bool progressive = false);

}  // namespace millrace
