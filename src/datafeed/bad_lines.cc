#include "datafeed/bad_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "core/same_file.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

constexpr size_t kFirstLines = 5;
constexpr int64_t kFractionFrom = 1000;

}  // namespace

Result<std::unique_ptr<BadLines>> BadLines::Create(const BadLinePolicy& policy, std::string default_quarantine_path,
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
                         std::to_string(policy.max_fraction()));
  }
  if (policy.action() == BadLinePolicy::QUARANTINE) {
    if (policy.quarantine_path().empty() && !default_quarantine_path.empty()) {
      std::error_code ignored;  // opening the file says what is wrong
      std::filesystem::create_directories(std::filesystem::path(default_quarantine_path).parent_path(), ignored);
    }
    lines->quarantine_path_ =
        policy.quarantine_path().empty() ? std::move(default_quarantine_path) : policy.quarantine_path();
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
    // Appended to, so that what an interrupted run or an earlier pass found is kept.
    lines->quarantine_ =
        FileDescriptor(::open(lines->quarantine_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!lines->quarantine_.is_open()) {
      return IoErrorFromErrno("cannot write bad lines to \"" + lines->quarantine_path_ + "\"", errno);
    }
  }
  return lines;
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
  char fraction[32];
  std::snprintf(fraction, sizeof(fraction), "max_fraction: %g", max_fraction_);
  return OverBudget(fraction);
}

Status BadLines::OverBudget(std::string_view limit) const {
  const int64_t bad = bad_lines();
  const int64_t all = std::max(lines_.load(std::memory_order_relaxed), bad);
  std::string text = "too many bad lines: " + std::to_string(bad) + " among the first " + std::to_string(all) +
                     " lines, more than data_desc.bad_lines { " + std::string(limit) + " } allows; the first are:";
  for (const std::string& message : first_) text += "\n  " + message;
  return BadData(std::move(text));
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
