#include "reader/prefetcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/caught.h"

namespace millrace {
Prefetcher::Prefetcher(int threads, size_t capacity, Work work)
    : thread_count_(threads),
      capacity_(capacity),
      at_once_(std::max<size_t>(capacity / 2, 1)),
      work_(std::move(work)),
      room_(capacity) {}

Status Prefetcher::Start() {
  running_ = thread_count_;
  Status started = Caught("reading ahead", [this] {
    for (int i = 0; i < thread_count_; ++i) {
      threads_.emplace_back([this, i](const std::stop_token& stop) { Run(i, stop); });
    }
    return Status::Ok();
  });
  if (!started.ok()) Stop();
  return started;
}

void Prefetcher::Run(int thread, const std::stop_token& stop) {
  Status status = Caught("reading ahead", [&] { return work_(thread, stop); });
  const std::lock_guard lock(mutex_);
  const bool is_last = --running_ == 0;
  if (is_closed_ || (status.ok() && !is_last)) return;
  is_closed_ = true;
  failure_ = std::move(status);
  has_items_.notify_all();
  has_room_.notify_all();
}

Status Prefetcher::Push(Item* item, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (items_.size() >= room_ && !is_closed_) {
    ++waiting_;
    const bool came = has_room_.wait(lock, stop, [this] { return items_.size() < room_ || is_closed_; });
    --waiting_;
    if (!came) return Cancelled("stopped while waiting for room for what is read ahead");
  }
  if (is_closed_) return failure_.ok() ? Cancelled("reading ahead has ended") : failure_;
  items_.push_back(std::move(*item));
  item->clear();
  if (!used_.empty()) {
    item->swap(used_.back());
    used_.pop_back();
  }
  const bool is_waited_for = wanted_ != 0 && items_.size() >= wanted_;
  if (is_waited_for) wanted_ = 0;
  lock.unlock();
  if (is_waited_for) has_items_.notify_one();
  return Status::Ok();
}

Result<bool> Prefetcher::Next(Item* out, size_t together, const std::stop_token& stop) {
  if (threads_.empty()) MR_TRY(Start());
  if (!out->empty()) {
    returned_.push_back(std::move(*out));
    out->clear();
  }
  if (next_ == taken_.size()) MR_TRY(Take(together, stop));
  if (next_ == taken_.size()) return false;
  out->swap(taken_[next_++]);
  return true;
}

Status Prefetcher::Take(size_t together, const std::stop_token& stop) {
  taken_.clear();
  next_ = 0;
  std::unique_lock lock(mutex_);
  std::move(returned_.begin(), returned_.end(), std::back_inserter(used_));
  returned_.clear();
  room_ = capacity_;
  const size_t least = std::clamp<size_t>(together, 1, at_once_);
  if (items_.size() < least && !is_closed_) {
    wanted_ = least;
    if (waiting_ > 0) has_room_.notify_all();
    const bool came = has_items_.wait(lock, stop, [&] { return items_.size() >= least || is_closed_; });
    wanted_ = 0;
    if (!came) return Cancelled("stopped while waiting for what is read ahead");
  }
  if (items_.size() <= at_once_) {
    taken_.swap(items_);
  } else {
    const auto end = items_.begin() + static_cast<std::ptrdiff_t>(at_once_);
    std::move(items_.begin(), end, std::back_inserter(taken_));
    items_.erase(items_.begin(), end);
  }
  if (taken_.empty()) return failure_;
  room_ = capacity_ - (taken_.size() - 1);  // the first one is delivered now
  if (waiting_ > 0) has_room_.notify_all();
  return Status::Ok();
}

void Prefetcher::Stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  items_.clear();
  taken_.clear();
  next_ = 0;
  room_ = capacity_;
  is_closed_ = false;
  failure_ = Status::Ok();
}

}  // namespace millrace
