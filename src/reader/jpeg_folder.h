#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// A picture's file and the class that its folder says.
struct LabelledPicture {
  std::string path;
  int64_t label = 0;
};

/// The pictures that `path` means, in the order of their names: itself when it is a file, the files of a folder, or
/// those of the folders in a folder, which then are its classes. Names that begin with a dot count for nothing.
///
/// Labels: folders that are all named by numbers have these as labels; otherwise a class's label is the place of its
/// name among those of the folder. Pictures without folders of classes have the number that their folder is named by.
/// When `wants_labels` is false, none is looked for. kNotFound, kIo, or kInvalidConfig for a folder that is neither
/// kind or a label that nothing says. Reads the folders alone, no picture.
Result<std::vector<LabelledPicture>> ListPictures(const std::string& path, bool wants_labels);

}  // namespace millrace
