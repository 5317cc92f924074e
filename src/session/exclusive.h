#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/status.h"

namespace millrace {

/// An object that one call at a time can use: a second call fails with kAlreadyExists instead of waiting. Only reads
/// and writes of single values, which are over at once, never make another call fail. Thread-safe.
template <class T>
class Exclusive {
 public:
  /// Access to the object until the lease ends.
  class Lease {
   public:
    Lease(Exclusive* owner, std::unique_ptr<T> value) : owner_(owner), value_(std::move(value)) {}
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (value_ == nullptr) return;
      const std::lock_guard lock(owner_->mutex_);
      owner_->value_ = std::move(value_);
      owner_->is_brief_ = false;
      owner_->returned_.notify_all();
    }
    T& operator*() const { return *value_; }
    T* operator->() const { return value_.get(); }

   private:
    Exclusive* owner_;
    std::unique_ptr<T> value_;
  };

  /// `name` is used in errors: "scope".
  Exclusive(std::string name, std::unique_ptr<T> value) : name_(std::move(name)), value_(std::move(value)) {}

  /// Waits for a brief lease. The caller must not hold a lock that the holder of one may need, such as Python's GIL.
  Result<Lease> Acquire() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !is_brief_; });
    return Take(false);
  }
  /// Acquire that never waits: it also fails during a brief lease.
  Result<Lease> TryAcquire() {
    const std::lock_guard lock(mutex_);
    return Take(false);
  }
  /// TryAcquire for a brief lease, whose holder must not wait for another call.
  Result<Lease> TryAcquireBriefly() {
    const std::lock_guard lock(mutex_);
    return Take(true);
  }

 private:
  Result<Lease> Take(bool is_brief) {
    if (value_ == nullptr) return AlreadyExists("the " + name_ + " is in use by another call that is not over");
    is_brief_ = is_brief;
    return Lease(this, std::move(value_));
  }

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::unique_ptr<T> value_;
  bool is_brief_ = false;  ///< the lease that is out
};

}  // namespace millrace
