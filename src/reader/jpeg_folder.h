#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// A picture's file, and its class according to the folder.
struct LabelledPicture {
  std::string path;
  int64_t label = 0;
};

/// Lists pictures in the order of their names: `path` itself if it is a file, the files of a folder, or the files of
/// its subfolders, which are then the classes. Ignores names starting with a dot.
///
/// If all class folders have numeric names, these are the labels; otherwise a label is the position of the folder's
/// name in the sorted list. Pictures directly in `path` get the number in its name. If `wants_labels` is false, labels
/// are not computed. Lists folders without opening pictures. Fails with kNotFound if `path` is missing or empty, kIo if
/// a folder cannot be read, kInvalidConfig for a mixed folder or a label that cannot be determined.
Result<std::vector<LabelledPicture>> ListPictures(const std::string& path, bool wants_labels);

}  // namespace millrace
