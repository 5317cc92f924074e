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

/// Decodes JPEG pictures like libjpeg does by default; ignores Exif's orientation.
///
/// Stricter than libjpeg: a truncated or damaged picture is an error, while libjpeg would fill it with grey. Extra
/// bytes between segments, which some cameras write, are accepted. One thread.
class JpegDecoder {
 public:
  /// Throws std::bad_alloc.
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Reads the file `path` and parses its header. Allocates only if no file this large was read before, and nothing of
  /// the picture's size. Fails with kBadData if it is not a JPEG picture, kNotFound if the file is missing, kIo if it
  /// cannot be read, kUnavailable without memory; messages start with `path`.
  Result<PictureSize> ReadHeader(const std::string& path);
  /// Parses the header of a file already in memory; copies `bytes`. Fails like the other overload.
  Result<PictureSize> ReadHeader(const std::string& path, std::string_view bytes);
  /// Decodes the picture of the last successful ReadHeader to planes of height rows of width values: 1 plane (grey) or
  /// 3 (red, green, blue), for any file. T is uint8_t or float. Fails with kBadData for a damaged picture, kUnavailable
  /// without memory; messages start with `path`.
  template <class T>
  Status ReadPlanes(const std::string& path, int channels, T* planes);

  /// libjpeg's state; declared here for its callbacks.
  struct State;

 private:
  Status ReadBytes(const std::string& path);
  Result<PictureSize> HeaderOfBytes(const std::string& path);
  Status Failure(const std::string& path, const char* what) const;

  std::unique_ptr<State> state_;
  UninitializedVector<unsigned char> bytes_;  ///< the file with padding
  UninitializedVector<unsigned char> rows_;   ///< some rows of pixels
};

}  // namespace millrace
