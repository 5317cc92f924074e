#include "dataset/instant_cursor.h"

#include <algorithm>
#include <chrono>

#include "core/elapsed.h"

namespace millrace {

InstantCursor::InstantCursor(const InstantFormat& format, const std::vector<std::string>& files, int batch_size,
                             bool drop_last, TrainedLedger trained)
    : format_(&format), files_(&files), batch_size_(batch_size), drop_last_(drop_last), trained_(std::move(trained)) {}

Result<InstantCursor::Rows> InstantCursor::Next() {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return failure_;
  const auto start = std::chrono::steady_clock::now();
  Result<Rows> rows = NextOfFile();
  seconds_ += SecondsSince(start);
  if (!rows.ok()) failure_ = rows.status();
  return rows;
}

Result<InstantCursor::Rows> InstantCursor::NextOfFile() {
  while (number_ < files_->size()) {
    if (file_ == nullptr) MR_TRY(OpenFile());
    const std::span<const uint8_t> bytes = file_->bytes();
    if (at_ == bytes.size()) {
      CloseFile();
      continue;
    }
    MR_TRY(file_->CheckSize());
    // Rows that an interrupted run trained are walked over as well, up to the next one that it did not.
    const uint64_t untrained = trained_.empty() ? row_ : trained_.NextUntrained(number_, row_);
    uint64_t most = untrained > row_ ? untrained - row_ : static_cast<uint64_t>(batch_size_);
    if (!trained_.empty() && untrained == row_) {
      for (uint64_t i = 1; i < most; ++i) {
        if (trained_.Contains(number_, row_ + i)) most = i;
      }
    }
    most = std::min<uint64_t>(most, INT32_MAX);
    Result<InstantFormat::Stretch> stretch = format_->FindRows(bytes, at_, static_cast<int>(most), row_ + 1);
    if (!stretch.ok()) return std::move(stretch).status().Context((*files_)[number_]);
    Rows rows{file_, number_, row_, *stretch};
    stats_.lines += stretch->rows;
    stats_.bytes += static_cast<int64_t>(stretch->end - stretch->begin);
    row_ += static_cast<uint64_t>(stretch->rows);
    at_ = stretch->end;
    if (untrained > rows.first_row) {
      stats_.counters["trained_before"] += stretch->rows;
      continue;
    }
    if (drop_last_ && stretch->rows < batch_size_) continue;
    stats_.rows += stretch->rows;
    return rows;
  }
  return Rows{};
}

Status InstantCursor::OpenFile() {
  Result<MappedFile> file = MappedFile::Open((*files_)[number_]);
  MR_TRY(file.status());
  file_ = std::make_shared<const MappedFile>(std::move(*file));
  if (file_->bytes().empty()) ++stats_.counters["empty_file"];
  return Status::Ok();
}

void InstantCursor::CloseFile() {
  ++stats_.files;
  file_.reset();
  ++number_;
  at_ = 0;
  row_ = 0;
}

PassStats InstantCursor::stats() const {
  const std::lock_guard lock(mutex_);
  PassStats stats = stats_;
  stats.stage_seconds["find_rows"] = seconds_;
  return stats;
}

}  // namespace millrace
