#include "datafeed/bad_lines.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/hash.h"
#include "core/numbers.h"
#include "core/same_file.h"
#include "core/words.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

constexpr size_t kFirstLines = 5;
constexpr int64_t kFractionFrom = 1000;
constexpr int kLockTries = 50;
constexpr std::chrono::milliseconds kLockPause{2};

/// Locks a quarantine file against other writers, usually datasets of the same job, so that complete records are read.
/// Continues without the lock if the file system has no locks, or if another process holds it longer than a record
/// takes, so that a hanging process does not block others.
class FileLock {
 public:
  explicit FileLock(const FileDescriptor& file) : fd_(file.get()) {
    for (int tries = 0; !is_held_ && tries < kLockTries; ++tries) {
      is_held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
      if (!is_held_ && errno != EWOULDBLOCK && errno != EINTR) return;
      if (!is_held_) std::this_thread::sleep_for(kLockPause);
    }
  }
  ~FileLock() {
    if (is_held_) ::flock(fd_, LOCK_UN);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool is_held() const { return is_held_; }

 private:
  int fd_;
  bool is_held_ = false;
};

constexpr char kOfRank[] = ".rank-";

}  // namespace

std::string QuarantinePath(const BadLinePolicy& policy, const std::string& output_dir) {
  if (!policy.quarantine_path().empty() || output_dir.empty()) return policy.quarantine_path();
  return output_dir + "/bad_lines.txt";
}

std::string QuarantineOfRank(const std::string& path, int rank) {
  if (rank == 0) return path;
  std::filesystem::path of_rank = path;
  const std::string extension = of_rank.extension().string();
  of_rank.replace_extension();
  return of_rank.string() + kOfRank + std::to_string(rank) + extension;
}

Result<std::unique_ptr<BadLines>> BadLines::Create(const BadLinePolicy& policy, const std::string& output_dir,
                                                   const std::vector<std::string>& inputs,
                                                   const std::stop_token& stop) {
  std::unique_ptr<BadLines> lines(new BadLines);
  lines->action_ = policy.action();
  lines->max_lines_ = policy.max_lines();
  lines->max_fraction_ = policy.max_fraction();
  if (policy.max_lines() < 0) {
    return InvalidConfig("data_desc.bad_lines.max_lines must not be negative, but is " +
                         std::to_string(policy.max_lines()));
  }
  if (!(policy.max_fraction() >= 0 && policy.max_fraction() <= 1)) {
    return InvalidConfig("data_desc.bad_lines.max_fraction must be from 0 to 1, but is " +
                         ShortestNumber(policy.max_fraction()));
  }
  if (policy.action() == BadLinePolicy::QUARANTINE) {
    lines->quarantine_path_ = QuarantinePath(policy, output_dir);
    const std::filesystem::path folder = std::filesystem::path(lines->quarantine_path_).parent_path();
    if (!output_dir.empty() && folder == (std::filesystem::path(output_dir) / "file").parent_path()) {
      std::error_code ignored;  // opening the file reports the error
      std::filesystem::create_directories(folder, ignored);
    }
    if (lines->quarantine_path_.empty()) {
      return InvalidConfig("data_desc.bad_lines: QUARANTINE needs quarantine_path or an output folder");
    }
    std::error_code absent;
    const bool is_there = std::filesystem::is_regular_file(lines->quarantine_path_, absent);
    for (const std::string& input : inputs) {
      if (!is_there || stop.stop_requested()) break;
      if (!IsSamePlainFile(lines->quarantine_path_, input)) continue;
      return InvalidConfig(
          "data_desc.bad_lines: \"" + input +
          "\" is an input file, and bad lines would be written to its end: name another quarantine_path");
    }
    // Append, to keep what an interrupted run or an earlier pass found.
    lines->quarantine_ =
        FileDescriptor(::open(lines->quarantine_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!lines->quarantine_.is_open()) {
      return IoErrorFromErrno("cannot write bad lines to \"" + lines->quarantine_path_ + "\"", errno);
    }
    MR_TRY(lines->TakeQuarantined());
    MR_TRY(lines->TakeOfOtherRanks());
  }
  return lines;
}

void BadLines::ShowNonFinite(const std::string& place, bool has_columns) {
  Say("warning: " + place + ": a value of a float slot is NaN or infinite, and is taken as it is; " +
      "data_desc.non_finite: REJECT_NON_FINITE makes a bad line of it" +
      (has_columns ? ", and csv { missing: \"nan\" } a missing value of the text nan" : "") + "\n");
}

Status BadLines::TakeQuarantined() {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(quarantine_path_, absent)) return Status::Ok();
  const FileLock lock(quarantine_);
  MR_ASSIGN(const std::string text, ReadFile(quarantine_path_));
  const std::string_view rest = Remember(text);
  remembered_ = static_cast<int64_t>(text.size() - rest.size());
  // Without the lock, another process may be writing this record.
  if (rest.empty() || !lock.is_held()) return Status::Ok();
  // A killed run left this record incomplete.
  if (::ftruncate(quarantine_.get(), static_cast<off_t>(text.size() - rest.size())) == 0) return Status::Ok();
  return IoErrorFromErrno("cannot write bad lines to \"" + quarantine_path_ + "\"", errno);
}

void BadLines::TakeNew() {
  struct stat info {};
  if (::fstat(quarantine_.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= remembered_) return;
  // It may have been replaced under its name, which then holds less.
  const FileDescriptor file(::open(quarantine_path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text(static_cast<size_t>(info.st_size - remembered_), '\0');
  const ssize_t n = file.is_open() ? ::pread(file.get(), text.data(), text.size(), remembered_) : 0;
  text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  remembered_ += static_cast<int64_t>(text.size() - Remember(text).size());
}

std::string_view BadLines::Remember(std::string_view text) {
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    quarantined_.insert(XxHash64(text.substr(0, end + 1)));
    text.remove_prefix(end + 1);
  }
  return text;
}

Status BadLines::TakeOfOtherRanks() {
  const std::filesystem::path own = quarantine_path_;
  const std::string extension = own.extension().string();
  std::string stem = own.stem().string();
  const size_t of_rank = stem.rfind(kOfRank);
  if (of_rank != std::string::npos) stem.resize(of_rank);
  std::error_code error;
  const std::filesystem::path folder = own.has_parent_path() ? own.parent_path() : ".";
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool is_one = name == stem + extension || (name.starts_with(stem + kOfRank) && name.ends_with(extension));
    std::error_code absent;
    if (!is_one || name == own.filename() || !at->is_regular_file(absent)) continue;
    MR_ASSIGN(const std::string text, ReadFile(at->path().string()));
    Remember(text);  // an incomplete last record is still being written
  }
  return Status::Ok();
}

void BadLines::CountEarlier(const std::map<std::string, int64_t>& by_kind, int64_t lines) {
  const std::lock_guard lock(mutex_);
  for (const auto& [kind, count] : by_kind) {
    by_kind_[kind] += count;
    bad_.fetch_add(count, std::memory_order_relaxed);
  }
  AddLines(lines);
}

Status BadLines::Report(std::string_view kind, std::string_view message, std::string_view line) {
  const std::lock_guard lock(mutex_);
  ++by_kind_[std::string(kind)];
  const int64_t bad = bad_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (action_ == BadLinePolicy::FAIL) return BadData(std::string(message));
  if (first_.size() < kFirstLines) first_.emplace_back(message);
  if (quarantine_.is_open()) {
    std::string record(message);
    std::replace(record.begin(), record.end(), '\n', ' ');
    record.append("\t").append(line).append("\n");
    const uint64_t hash = XxHash64(record);
    std::optional<FileLock> lock_file;
    if (!quarantined_.contains(hash)) {
      lock_file.emplace(quarantine_);
      TakeNew();
    }
    if (!quarantined_.insert(hash).second) record.clear();
    remembered_ += static_cast<int64_t>(record.size());
    for (std::string_view rest = record; !rest.empty();) {
      const ssize_t n = ::write(quarantine_.get(), rest.data(), rest.size());
      if (n >= 0) {
        rest.remove_prefix(static_cast<size_t>(n));
      } else if (errno != EINTR) {
        return IoErrorFromErrno("cannot write a bad line to \"" + quarantine_path_ + "\"", errno);
      }
    }
  }
  if (bad > max_lines_) return OverBudget("max_lines: " + std::to_string(max_lines_));
  return Status::Ok();
}

Status BadLines::CheckShare() const {
  const int64_t all = lines_.load(std::memory_order_relaxed);
  const int64_t bad = bad_lines();
  if (bad == 0 || all < kFractionFrom || static_cast<double>(bad) <= max_fraction_ * static_cast<double>(all)) {
    return Status::Ok();
  }
  const std::lock_guard lock(mutex_);
  return OverBudget("max_fraction: " + ShortestNumber(max_fraction_));
}

Status TooManyBadLines(int64_t bad, const std::string& lines, std::string_view limit,
                       std::span<const std::string> first) {
  std::string text = "too many bad lines: " + std::to_string(bad) + " among the " + lines +
                     ", more than data_desc.bad_lines { " + std::string(limit) + " } allows; the first are:";
  for (const std::string& message : first) text += "\n  " + message;
  return BadData(std::move(text));
}

Status BadLines::OverBudget(std::string_view limit) const {
  const int64_t bad = bad_lines();
  const int64_t all = std::max(lines_.load(std::memory_order_relaxed), bad);
  return TooManyBadLines(bad, "first " + std::to_string(all) + " lines", limit, first_);
}

std::map<std::string, int64_t> BadLines::counts_by_kind() const {
  const std::lock_guard lock(mutex_);
  return by_kind_;
}

std::vector<std::string> BadLines::first_lines() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

}  // namespace millrace
