#include "reader/byte_file.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/decompress.h"
#include "reader/line_file.h"

namespace millrace {
namespace {

constexpr size_t kBlock = size_t{256} << 10;

}  // namespace

Result<std::string_view> ByteFile::Read(uint64_t size, const char* what, const std::stop_token& stop) {
  if (source_ == nullptr) {
    if (std::exchange(is_begun_, true)) MR_TRY(CheckStartsOver(path_));
    MR_ASSIGN(std::unique_ptr<ByteSource> file, OpenFile(path_));
    source_ = Decompress(std::move(file), path_);
  }
  last_ = offset_;
  while (end_ - begin_ < size) {
    if (begin_ > 0) {
      buffer_.erase(0, begin_);
      end_ -= std::exchange(begin_, 0);
    }
    // Doubled as the file turns out to hold so much: a size in a damaged file is not believed.
    buffer_.resize(end_ + std::max(kBlock, std::min<size_t>(size, 2 * end_) - std::min<size_t>(size, end_)));
    MR_ASSIGN(const size_t n, source_->Read(std::span(buffer_).subspan(end_), stop));
    end_ += n;
    if (n > 0) continue;
    if (end_ == begin_) return std::string_view();
    return Error("the file ends within " + std::string(what) + ": " + std::to_string(size) + " bytes wanted, " +
                 std::to_string(end_ - begin_) + " left");
  }
  const std::string_view bytes(buffer_.data() + begin_, size);
  begin_ += size;
  offset_ += size;
  return bytes;
}

void ByteFile::Rewind() {
  source_.reset();
  begin_ = 0;
  end_ = 0;
  offset_ = 0;
  last_ = 0;
}

Status ByteFile::Error(const std::string& message) const {
  return BadData(path_ + ": byte " + std::to_string(last_) + ": " + message);
}

}  // namespace millrace
