#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// JPEG pictures, one per record: a file, or the files of a folder and its class folders (jpeg_folder.h).
///
/// Output 0 is the picture, float32 or uint8 [-1, channels, height, width], values from 0 to 255; channels is 1 (grey)
/// or 3 (red, green, blue), for any file. The optional output 1 is its label, one int64. A picture of another size, a
/// truncated picture and a non-JPEG file fail with kBadData, naming the file. Without libjpeg (MILLRACE_JPEG), opening
/// a file fails with kInvalidConfig.
FileFormat JpegFormat();

}  // namespace millrace
