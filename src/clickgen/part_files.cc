#include "clickgen/part_files.h"

#include <cerrno>

namespace millrace {

PartFiles::~PartFiles() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

Status PartFiles::Append(int part, std::string_view bytes) {
  if (part != part_) MR_TRY(Open(part));
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    return IoErrorFromErrno("cannot write " + paths_.back(), errno);
  }
  bytes_ += static_cast<int64_t>(bytes.size());
  return Status::Ok();
}

Status PartFiles::Open(int part) {
  if (folder_ == "-") {
    file_ = stdout;
    part_ = part;
    paths_.assign(1, "-");
    return Status::Ok();
  }
  MR_TRY(Close());
  char name[32];
  std::snprintf(name, sizeof(name), "/part-%05d", part);
  paths_.push_back(folder_ + name + suffix_);
  file_ = std::fopen(paths_.back().c_str(), "wb");
  if (file_ == nullptr) return IoErrorFromErrno("cannot create " + paths_.back(), errno);
  part_ = part;
  return Status::Ok();
}

Status PartFiles::Close() {
  std::FILE* file = std::exchange(file_, nullptr);
  if (file == nullptr) return Status::Ok();
  const bool failed = file == stdout ? std::fflush(file) != 0 : std::fclose(file) != 0;
  return failed ? IoErrorFromErrno("cannot write " + paths_.back(), errno) : Status::Ok();
}

}  // namespace millrace
