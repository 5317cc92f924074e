#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Width and height in pixels.
struct PictureSize {
  int width = 0;
  int height = 0;
};

/// Decodes JPEG pictures, one after another, as libjpeg does by default; Exif's orientation changes nothing.
///
/// Stricter than libjpeg: a picture that is cut short or damaged is an error, where libjpeg would fill it up with grey.
/// Bytes between two parts of a picture, which some cameras leave there, are let pass. One thread.
class JpegDecoder {
 public:
  /// Throws std::bad_alloc.
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Reads the header of a picture: `bytes`, which must last until ReadPixels is done. Allocates nothing of the
  /// picture's size. kBadData that begins with `path` when it is no JPEG picture.
  Result<PictureSize> ReadHeader(const std::string& path, std::string_view bytes);
  /// Decodes the picture of the last ReadHeader, which succeeded: height rows of width pixels of `channels` values, 1
  /// (grey) or 3 (red, green, blue), whatever the file has. kBadData that begins with `path`.
  Status ReadPixels(const std::string& path, int channels, uint8_t* pixels);

  /// libjpeg's state; named here for its callbacks alone.
  struct State;

 private:
  Status Failure(const std::string& path, const char* what) const;

  std::unique_ptr<State> state_;
};

}  // namespace millrace
