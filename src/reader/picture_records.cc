#include "reader/picture_records.h"

#include <cstring>
#include <utility>

#include "core/byte_source.h"

namespace millrace {
namespace {

/// Head of a record; path and bytes follow.
struct Head {
  int64_t label = 0;
  uint32_t path_size = 0;
  uint32_t is_too_long = 0;
};

class Pictures final : public RecordSource {
 public:
  Pictures(std::vector<LabelledPicture> pictures, size_t most) : pictures_(std::move(pictures)), most_(most) {}

  Result<bool> Next(RecordFrame* frame, const std::stop_token& stop) override {
    if (next_ == pictures_.size()) return false;
    if (stop.stop_requested()) return Cancelled("stopped between two pictures");
    const LabelledPicture& picture = pictures_[next_++];
    Head head{picture.label, static_cast<uint32_t>(picture.path.size()), 0};
    const size_t begin = sizeof(head) + picture.path.size();
    MR_ASSIGN(const size_t size, ReadBytes(picture.path, begin, stop));
    head.is_too_long = size > most_ ? 1 : 0;
    std::memcpy(record_.data(), &head, sizeof(head));
    picture.path.copy(record_.data() + sizeof(head), picture.path.size());
    *frame = {.body = std::string_view(record_).substr(0, begin + (size > most_ ? 0 : size))};
    bytes_ += size;
    return true;
  }
  bool HasNext() const override { return next_ < pictures_.size(); }
  bool WaitReadable(std::chrono::milliseconds) override { return true; }
  // A damaged picture is also a record.
  bool is_damaged() const override { return false; }
  bool is_within_frame() const override { return false; }
  uint64_t bytes() const override { return bytes_; }

 private:
  /// Reads the file after the first `begin` bytes of the record; returns the size, or more than most_.
  Result<size_t> ReadBytes(const std::string& path, size_t begin, const std::stop_token& stop) {
    constexpr size_t kFirst = size_t{64} << 10;
    MR_ASSIGN(const std::unique_ptr<ByteSource> file, OpenFile(path));
    for (size_t end = begin;;) {
      if (record_.size() <= end) record_.resize(std::max(2 * end, begin + kFirst));
      MR_ASSIGN(const size_t got, file->Read(std::span(record_).subspan(end), stop));
      end += got;
      if (got == 0 || end - begin > most_) return end - begin;
    }
  }

  const std::vector<LabelledPicture> pictures_;
  const size_t most_;
  size_t next_ = 0;
  std::string record_;  ///< keeps its size for all pictures
  uint64_t bytes_ = 0;
};

}  // namespace

PictureRecord PictureRecord::Of(std::string_view record) {
  Head head;
  std::memcpy(&head, record.data(), sizeof(head));
  record.remove_prefix(sizeof(head));
  return {head.label, record.substr(0, head.path_size), record.substr(head.path_size), head.is_too_long != 0};
}

std::unique_ptr<RecordSource> PictureRecords(std::vector<LabelledPicture> pictures, const LineLimit& limit) {
  return std::make_unique<Pictures>(std::move(pictures), limit.bytes);
}

}  // namespace millrace
