#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/uninitialized_vector.h"

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

  /// Reads the file `path` and the header of the picture that it is. Allocates nothing of the picture's size, and
  /// nothing at all once a larger file was read. kBadData that begins with `path` when it is no JPEG picture;
  /// kNotFound, kIo.
  Result<PictureSize> ReadHeader(const std::string& path);
  /// The same of a picture whose file was read already; keeps a copy of its bytes.
  Result<PictureSize> ReadHeader(const std::string& path, std::string_view bytes);
  /// Decodes the picture of the last ReadHeader, which succeeded, into planes of height rows of width values: 1 plane
  /// (grey) or 3 (red, green, blue), whatever the file has. T is uint8_t or float. kBadData that begins with `path`.
  template <class T>
  Status ReadPlanes(const std::string& path, int channels, T* planes);

  /// libjpeg's state; named here for its callbacks alone.
  struct State;

 private:
  Status ReadBytes(const std::string& path);
  Result<PictureSize> HeaderOfBytes(const std::string& path);
  Status Failure(const std::string& path, const char* what) const;

  std::unique_ptr<State> state_;
  UninitializedVector<unsigned char> bytes_;  ///< the file, and what stands behind it
  UninitializedVector<unsigned char> rows_;   ///< some rows of pixels
};

}  // namespace millrace
