#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "core/status.h"
#include "ranks/rank_tables.h"

namespace millrace {

/// What was asked for ahead, until somebody takes it: objects with a `call` of RankTables that is under way, and its
/// `answers`. `ranks` outlives it. Any thread.
template <class Asked>
class PendingFetches {
 public:
  explicit PendingFetches(RankTables& ranks) : ranks_(&ranks) {}
  // Answers are written to what is under way.
  ~PendingFetches() { GiveUp(0); }
  PendingFetches(const PendingFetches&) = delete;
  PendingFetches& operator=(const PendingFetches&) = delete;

  void Add(std::shared_ptr<Asked> asked) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(std::move(asked));
  }

  /// The oldest one that is_wanted(asked), whose answers may still have to be waited for; null: there is none.
  template <class IsWanted>
  std::shared_ptr<Asked> Take(const IsWanted& is_wanted) {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(asked_.begin(), asked_.end(),
                                 [&](const std::shared_ptr<Asked>& asked) { return is_wanted(*asked); });
    if (at == asked_.end()) return nullptr;
    std::shared_ptr<Asked> asked = std::move(*at);
    asked_.erase(at);
    return asked;
  }

  /// Waits for the oldest ones, and forgets them, until no more than `left` are left.
  void GiveUp(size_t left) {
    while (true) {
      std::shared_ptr<Asked> oldest;
      {
        const std::lock_guard lock(mutex_);
        if (asked_.size() <= left) return;
        oldest = std::move(asked_.front());
        asked_.pop_front();
      }
      (void)ranks_->Wait(&oldest->call, &oldest->answers).ok();
    }
  }

  /// Waits until all answers are here, and leaves them to who takes them.
  Status WaitUntilHere() {
    std::deque<std::shared_ptr<Asked>> asked;
    {
      const std::lock_guard lock(mutex_);
      asked = asked_;
    }
    for (const std::shared_ptr<Asked>& one : asked) MR_TRY(ranks_->WaitUntilOver(one->call));
    return Status::Ok();
  }

 private:
  RankTables* ranks_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Asked>> asked_;
};

}  // namespace millrace
