#include "dataset/line_draw.h"

#include "config/file_list.h"

namespace millrace {
namespace {

std::string_view Ending(std::string_view file) { return file.substr(file.find_last_of('/') + 1); }

/// "part-0" of "part-0", "./part-0", "/data/part-0" and "hdfs://host/data/part-0"; "images" of "jpeg:images/".
std::string_view NameOf(std::string_view file) {
  // Rows in memory have no folder.
  if (file.starts_with("frame:")) return file;
  if (HasScheme(file)) file.remove_prefix(file.find(':') + 1);
  while (file.size() > 1 && file.ends_with('/')) file.remove_suffix(1);
  return Ending(file);
}

}  // namespace

uint64_t LineDraw::SeedOf(std::string_view file, uint32_t number) const {
  switch (by_) {
    case DrawnBy::kNumber: return Mix64(seed_, number);
    case DrawnBy::kPath: return Mix64(seed_, Fnv1a64(file));
    case DrawnBy::kEnding: return Mix64(seed_, Fnv1a64(Ending(file)));
    case DrawnBy::kName: break;
  }
  return Mix64(seed_, Fnv1a64(NameOf(file)));
}

}  // namespace millrace
