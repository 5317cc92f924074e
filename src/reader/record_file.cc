#include "reader/record_file.h"

#include <memory>
#include <utility>

#include "core/decompress.h"
#include "reader/line_file.h"

namespace millrace {

Result<bool> RecordFile::Next(RecordFrame* frame, const std::stop_token& stop) {
  if (!stream_) {
    if (std::exchange(is_begun_, true)) MR_TRY(CheckStartsOver(path_));
    MR_ASSIGN(std::unique_ptr<ByteSource> file, OpenFile(path_));
    stream_.emplace(Decompress(std::move(file), path_), *framing_);
  }
  Result<bool> more = stream_->Next(frame, stop);
  return more.ok() || !stream_->is_damaged() ? more : std::move(more).Context(path_);
}

}  // namespace millrace
