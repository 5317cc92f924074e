#include "part_files.h"

#include <filesystem>

namespace mini {

using millrace::InvalidConfig;

millrace::Result<std::vector<std::string>> JoinDirPath(const PartNames& names) {
  if (names.data_dir.empty()) return InvalidConfig("data_dir: which folder holds the parts?");
  if (names.data_part_num < 1) {
    return InvalidConfig("data_part_num must be positive, not " + std::to_string(names.data_part_num));
  }
  if (names.part_name_suffix_length < -1 || names.part_name_suffix_length > 18) {
    return InvalidConfig("part_name_suffix_length is -1 or a number of digits up to 18, not " +
                         std::to_string(names.part_name_suffix_length));
  }
  std::vector<std::string> paths;
  for (int64_t part = 0; part < names.data_part_num; ++part) {
    std::string number = std::to_string(part);
    const auto length = static_cast<int64_t>(number.size());
    if (length < names.part_name_suffix_length) {
      number.insert(0, static_cast<size_t>(names.part_name_suffix_length - length), '0');
    }
    paths.push_back((std::filesystem::path(names.data_dir) / (names.part_name_prefix + number)).string());
    std::error_code error;
    if (!std::filesystem::exists(paths.back(), error)) {
      return millrace::NotFound("no file \"" + paths.back() + "\", part " + std::to_string(part) + " of " +
                                std::to_string(names.data_part_num));
    }
    if (std::filesystem::is_directory(paths.back(), error)) {
      return InvalidConfig("\"" + paths.back() + "\", part " + std::to_string(part) + " of " +
                           std::to_string(names.data_part_num) + ", is a folder, not a file");
    }
  }
  return paths;
}

}  // namespace mini
