#include "reader/prefetcher.h"

#include <new>
#include <optional>
#include <utility>

namespace millrace {
namespace {

// A thread is where memory that runs out, which tensors report by throwing, becomes a failure.
Status Guarded(const Prefetcher::Work& work, int thread, const std::stop_token& stop) {
  try {
    return work(thread, stop);
  } catch (const std::bad_alloc& error) {
    return Unavailable(std::string("no memory to read ahead: ") + error.what());
  }
}

}  // namespace

Prefetcher::Prefetcher(int threads, size_t capacity, Work work)
    : thread_count_(threads), capacity_(capacity), work_(std::move(work)) {}

void Prefetcher::Start() {
  items_ = std::make_unique<Channel<Item>>(capacity_);
  used_ = std::make_unique<Channel<Item>>(capacity_ + static_cast<size_t>(thread_count_));
  running_ = thread_count_;
  for (int i = 0; i < thread_count_; ++i) {
    threads_.emplace_back([this, i](const std::stop_token& stop) { Run(i, stop); });
  }
}

void Prefetcher::Run(int thread, const std::stop_token& stop) {
  Status status = Guarded(work_, thread, stop);
  const bool is_last = running_.fetch_sub(1) == 1;
  if (!status.ok() || is_last) items_->Close(std::move(status));
}

Status Prefetcher::Push(Item* item, const std::stop_token& stop) {
  MR_TRY(items_->Push(std::move(*item), stop));
  *item = used_->TryPop().value_or(Item());
  return Status::Ok();
}

Result<bool> Prefetcher::Next(Item* out, const std::stop_token& stop) {
  if (items_ == nullptr) Start();
  if (!out->empty()) used_->TryPush(*out);
  MR_ASSIGN(std::optional<Item> item, items_->Pop(stop));
  if (!item) return false;
  *out = *std::move(item);
  return true;
}

void Prefetcher::Stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  items_.reset();
  used_.reset();
}

}  // namespace millrace
