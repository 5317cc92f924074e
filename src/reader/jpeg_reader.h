#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// JPEG pictures: a file, or the files of a folder and of the folders of classes in it (jpeg_folder.h), a record each.
///
/// Output 0 is the picture, float32 or uint8 [-1, channels, height, width], values from 0 to 255; channels is 1 (grey)
/// or 3 (red, green, blue), whatever the file has. Output 1, if there is one, is its label, one int64. A picture of
/// another size, one that is cut short, and a file that is no JPEG picture are kBadData that begins with the file. In a
/// build without libjpeg (MILLRACE_JPEG) opening one is kInvalidConfig that says so.
FileFormat JpegFormat();

}  // namespace millrace
