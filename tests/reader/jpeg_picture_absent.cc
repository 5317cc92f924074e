#include <glog/logging.h>

#include "reader/jpeg_picture.h"

namespace millrace {

bool HasJpeg() { return false; }

std::string JpegPicture(int, int, int, const std::function<int(int, int, int)>&, const JpegKind&) {
  LOG(FATAL) << "ask HasJpeg first";
}

std::vector<uint8_t> PixelsByLibjpeg(const std::string&, int) { LOG(FATAL) << "ask HasJpeg first"; }

}  // namespace millrace
