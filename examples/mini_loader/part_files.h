#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace mini {

/// How the files of a data set are called: DIR/PREFIX0, DIR/PREFIX1, ... with numbers of a fixed length, if any.
struct PartNames {
  std::string data_dir;
  int64_t data_part_num = 0;
  std::string part_name_prefix = "part-";
  int64_t part_name_suffix_length = -1;  ///< digits, filled with zeros: 3 for part-007; -1: as many as the number has
};

/// The paths in their order. kInvalidConfig when a setting makes no sense; kNotFound naming the first file that is not
/// there.
millrace::Result<std::vector<std::string>> JoinDirPath(const PartNames& names);

}  // namespace mini
