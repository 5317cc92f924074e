#include "reader/line_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "core/decompress.h"
#include "core/file.h"

namespace millrace {

namespace {

bool IsPipe(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
}

}  // namespace

Status CheckReadable(const std::string& path) {
  // Opening and closing a pipe would signal its writer that the reader is gone.
  return IsPipe(path) && ::access(path.c_str(), R_OK) == 0 ? Status::Ok() : OpenForReading(path).status();
}

Status CheckStartsOver(const std::string& path) {
  if (!IsPipe(path)) return Status::Ok();
  return InvalidConfig(path +
                       ": a pipe is read once and cannot start over; write its bytes to a file to read them in " +
                       "more than one pass");
}

Result<bool> LineFile::Next(std::string_view* line, const std::stop_token& stop) {
  if (blocks_ == nullptr) {
    MR_ASSIGN(std::unique_ptr<ByteSource> file, OpenFile(path_));
    blocks_ = std::make_unique<LineBlockReader>(
        Decompress(std::move(file), path_), 0,
        LineLimit{.advice = "Records that are so large are read from recordio, tfrecord or ofrecord files"});
  }
  if (at_ == block_.size) {
    Result<bool> more = blocks_->Next(block_, stop, BlockReader::Fill::kForAMoment);
    // The source names the file in its failures; the line reader does not know it.
    if (!more.ok() && blocks_->names_its_line()) return std::move(more).status().Context(path_);
    if (!more.ok()) return more;
    at_ = 0;
    if (!*more) block_.size = 0;
    if (!*more) return false;
  }
  const std::string_view rest = block_.text().substr(at_);
  *line = rest.substr(0, rest.find('\n'));
  at_ += line->size() + 1;
  ++number_;
  return true;
}

void LineFile::Rewind() {
  blocks_.reset();
  block_.size = 0;
  at_ = 0;
  number_ = 0;
}

}  // namespace millrace
