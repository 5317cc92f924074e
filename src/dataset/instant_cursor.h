#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/file_stamps.h"
#include "core/mapped_file.h"
#include "datafeed/instant_feed.h"
#include "dataset/dataset.h"

namespace millrace {

/// Distributes the rows of binary files to workers, a batch at a time. Thread-safe: Next walks over counts under a
/// lock.
class InstantCursor {
 public:
  /// What `feed`, `files` and `stamps` (from earlier passes) refer to must outlive the cursor.
  InstantCursor(const InstantFeed& feed, const std::vector<std::string>& files, FileStamps& stamps, int batch_size,
                bool drop_last, ConsumedRanges trained);

  /// The rows of a batch and their file, which stays mapped while somebody holds it.
  struct Dealt {
    std::shared_ptr<const MappedFile> file;
    uint32_t file_number = 0;
    uint64_t first_row = 0;  ///< from 0
    InstantFormat::Rows rows;
  };
  /// Replaces `dealt` by the next untrained rows; false at the end. Failures name file, row, slot and byte, and every
  /// later call repeats them.
  Result<bool> Next(Dealt* dealt);

  PassStats stats() const;

 private:
  Result<bool> NextOfFile(Dealt* dealt);
  Status OpenFile();
  Status CloseFile();

  const InstantFeed* feed_;
  const std::vector<std::string>* files_;
  FileStamps* stamps_;
  const int batch_size_;
  const bool drop_last_;
  const ConsumedRanges trained_;

  mutable std::mutex mutex_;
  std::shared_ptr<const MappedFile> file_;  ///< file number_, during its reading
  uint32_t number_ = 0;
  size_t at_ = 0;     ///< bytes of the file already dealt
  uint64_t row_ = 0;  ///< rows of the file already dealt
  Status failure_;
  PassStats stats_;
  double seconds_ = 0;
};

}  // namespace millrace
