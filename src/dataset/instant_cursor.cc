#include "dataset/instant_cursor.h"

#include <algorithm>
#include <chrono>

#include "core/elapsed.h"

namespace millrace {

InstantCursor::InstantCursor(const InstantFeed& feed, const std::vector<std::string>& files, FileStamps& stamps,
                             int batch_size, bool drop_last, ConsumedRanges trained)
    : feed_(&feed),
      files_(&files),
      stamps_(&stamps),
      batch_size_(batch_size),
      drop_last_(drop_last),
      trained_(std::move(trained)) {}

Result<bool> InstantCursor::Next(Dealt* dealt) {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return failure_;
  const auto start = std::chrono::steady_clock::now();
  Result<bool> got = NextOfFile(dealt);
  seconds_ += SecondsSince(start);
  if (!got.ok()) failure_ = got.status();
  return got;
}

Result<bool> InstantCursor::NextOfFile(Dealt* dealt) {
  while (number_ < files_->size()) {
    if (file_ == nullptr) MR_TRY(OpenFile());
    const std::span<const uint8_t> bytes = file_->bytes();
    if (at_ == bytes.size()) {
      MR_TRY(CloseFile());
      continue;
    }
    MR_TRY(file_->CheckSize());
    // Rows trained by an interrupted run must be walked over too, up to the next untrained one.
    const uint64_t untrained = trained_.empty() ? row_ : trained_.NextUntrained(number_, row_);
    uint64_t most = untrained > row_ ? untrained - row_ : static_cast<uint64_t>(batch_size_);
    if (!trained_.empty() && untrained == row_) {
      for (uint64_t i = 1; i < most; ++i) {
        if (trained_.Contains(number_, row_ + i)) most = i;
      }
    }
    // At most a batch at a time, also when skipping.
    most = std::min(most, static_cast<uint64_t>(batch_size_));
    InstantFormat::Rows& rows = dealt->rows;
    Status found = feed_->FindRows(bytes, at_, static_cast<int>(most), row_ + 1, &rows);
    if (!found.ok()) return std::move(found).Context((*files_)[number_]);
    dealt->file = file_;
    dealt->file_number = number_;
    dealt->first_row = row_;
    stats_.lines += rows.count;
    stats_.bytes += static_cast<int64_t>(rows.end - rows.begin);
    row_ += static_cast<uint64_t>(rows.count);
    at_ = rows.end;
    if (untrained > dealt->first_row) {
      stats_.counters["trained_before"] += rows.count;
      continue;
    }
    if (drop_last_ && rows.count < batch_size_) {
      stats_.counters["drop_last"] += rows.count;
      continue;
    }
    stats_.rows += rows.count;
    return true;
  }
  return false;
}

Status InstantCursor::OpenFile() {
  MR_TRY(stamps_->Begin((*files_)[number_]));
  Result<MappedFile> file = MappedFile::Open((*files_)[number_]);
  MR_TRY(file.status());
  file_ = std::make_shared<const MappedFile>(std::move(*file));
  if (file_->bytes().empty()) ++stats_.counters["empty_file"];
  return Status::Ok();
}

Status InstantCursor::CloseFile() {
  MR_TRY(stamps_->End((*files_)[number_]));
  ++stats_.files;
  file_.reset();
  ++number_;
  at_ = 0;
  row_ = 0;
  return Status::Ok();
}

PassStats InstantCursor::stats() const {
  const std::lock_guard lock(mutex_);
  PassStats stats = stats_;
  stats.stage_seconds["find_rows"] = seconds_;
  return stats;
}

}  // namespace millrace
