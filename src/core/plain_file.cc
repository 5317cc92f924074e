#include "core/plain_file.h"

#include <filesystem>
#include <system_error>

namespace millrace {
namespace {

namespace fs = std::filesystem;

std::string KindOf(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory: return "a folder";
    case fs::file_type::fifo: return "a named pipe";
    case fs::file_type::socket: return "a socket";
    case fs::file_type::character:
    case fs::file_type::block: return "a device";
    default: return "no plain file";
  }
}

}  // namespace

Status CheckPlainFile(const std::string& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::not_found) return NotFound("no such file: \"" + path + "\"");
  if (error) return IoErrorFromErrno("cannot look at \"" + path + "\"", error.value());
  if (type == fs::file_type::regular) return Status::Ok();
  return BadData("\"" + path + "\" is " + KindOf(type) + ", and a plain file belongs there");
}

}  // namespace millrace
