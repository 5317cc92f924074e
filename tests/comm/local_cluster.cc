#include "comm/local_cluster.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "comm/inbox.h"
#include "comm/rank_status.h"
#include "core/caught.h"

namespace millrace {

/// Meeting point of the ranks for collectives. Each publishes its data; once all are there, each reads what it needs,
/// and nobody leaves before all have done so.
class LocalCluster::MeetingPoint {
 public:
  /// A rank's data: one of the three, depending on its call.
  struct Offer {
    CollectiveCall call;
    std::span<const std::string> strings = {};
    std::span<const int64_t> values = {};
    const std::string* bytes = nullptr;
  };

  explicit MeetingPoint(int size) : offers_(static_cast<size_t>(size)) {}

  /// Calls `take` with the offers of all ranks. Fails with kInternal, for all from then on, if they do not match.
  template <class Take>
  Status Meet(int rank, const Offer& offer, const Take& take) {
    std::unique_lock lock(mutex_);
    if (!failure_.ok()) return failure_;
    const uint64_t meeting = meeting_;
    offers_[static_cast<size_t>(rank)] = offer;
    if (++here_ == offers_.size()) {
      here_ = 0;
      failure_ = Compare();
      if (failure_.ok()) ++meeting_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return meeting_ != meeting || !failure_.ok(); });
    }
    // A started meeting continues if a rank is lost now, because the others read this one's data.
    if (meeting_ == meeting) return failure_;
    lock.unlock();
    // Even without memory this rank must reach the end, where the others wait for it.
    Status taken = Caught("a collective of ranks", [&] {
      take(offers_);
      return Status::Ok();
    });
    lock.lock();
    const uint64_t end = ends_;
    if (++taken_ == offers_.size()) {
      taken_ = 0;
      ++ends_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return ends_ != end; });
    }
    return taken;
  }

  void Fail(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = status;
    changed_.notify_all();
  }

 private:
  Status Compare() const {
    for (size_t r = 1; r < offers_.size(); ++r) {
      MR_TRY(CheckSameCall(0, offers_[0].call, static_cast<int>(r), offers_[r].call));
    }
    return Status::Ok();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Offer> offers_;
  size_t here_ = 0;       ///< ranks waiting for the others
  size_t taken_ = 0;      ///< ranks that have read what they need
  uint64_t meeting_ = 0;  ///< number of started meetings
  uint64_t ends_ = 0;     ///< number of ended meetings
  Status failure_;
};

class LocalCluster::Rank : public Communicator {
 public:
  Rank(LocalCluster* cluster, int number)
      : cluster_(cluster), number_(number), thread_([this](const std::stop_token& stop) { inbox_.Serve(stop); }) {}

  /// Its initial number; rank() counts only remaining ranks.
  int number() const { return number_; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }

  /// Starts as rank `rank` of `ranks`.
  void Begin(int rank, std::vector<Rank*> ranks, std::shared_ptr<MeetingPoint> meeting_point) {
    inbox_.Reset();
    rank_ = rank;
    ranks_ = std::move(ranks);
    meeting_point_ = std::move(meeting_point);
  }

  void SetReceiver(MessageReceiver* receiver) override { inbox_.SetReceiver(receiver); }

  Status Send(int to, std::string message) override {
    MR_TRY(CheckRank("sending to", to, size()));
    MR_TRY(inbox_.failure());
    if (to != rank_) bytes_sent_ += static_cast<int64_t>(message.size());
    ranks_[static_cast<size_t>(to)]->inbox_.Put(rank_, std::move(message));
    return Status::Ok();
  }

  Status WaitUntil(const std::function<bool()>& done) override { return inbox_.WaitUntil(done); }

  Status AllToAll(std::span<const std::string> out, std::vector<std::string>* in) override {
    const size_t size = ranks_.size();
    MR_TRY(CheckStrings(out.size(), this->size()));
    in->resize(size);
    MR_TRY(Meet({.call = {"AllToAll"}, .strings = out}, [&](const Offers& offers) {
      for (size_t r = 0; r < size; ++r) (*in)[r] = offers[r].strings[static_cast<size_t>(rank_)];
    }));
    for (size_t r = 0; r < size; ++r) {
      if (r != static_cast<size_t>(rank_)) bytes_sent_ += static_cast<int64_t>(out[r].size());
    }
    return Status::Ok();
  }

  Status SumOverRanks(std::span<int64_t> values) override {
    // Uses separate memory, because the others read the values until all have their sums. Unsigned, so sums can wrap.
    std::vector<uint64_t> sums(values.size());
    MR_TRY(Meet({.call = {"SumOverRanks", 0, values.size()}, .values = values}, [&](const Offers& offers) {
      for (const auto& offer : offers) {
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<uint64_t>(offer.values[i]);
      }
    }));
    for (size_t i = 0; i < sums.size(); ++i) values[i] = static_cast<int64_t>(sums[i]);
    if (size() > 1) bytes_sent_ += static_cast<int64_t>(values.size_bytes());
    return Status::Ok();
  }

  Status Broadcast(int root, std::string* bytes) override {
    MR_TRY(CheckRank("broadcasting from", root, size()));
    MR_TRY(Meet({.call = {"Broadcast", root}, .bytes = bytes}, [&](const Offers& offers) {
      if (rank_ != root) *bytes = *offers[static_cast<size_t>(root)].bytes;
    }));
    if (rank_ == root) bytes_sent_ += static_cast<int64_t>(bytes->size()) * (size() - 1);
    return Status::Ok();
  }

  Status Barrier() override {
    return Meet({.call = {"Barrier"}}, [](const Offers&) {});
  }

  Status Shrink() override {
    MR_TRY(CheckIsFailed(inbox_.failure()));
    return cluster_->Shrink(*this) ? Status::Ok() : inbox_.failure();
  }

  int64_t bytes_sent() const override { return bytes_sent_; }

  void Fail(const Status& status) { inbox_.Fail(status); }
  void Stop() {
    thread_.request_stop();
    thread_.join();
  }

 private:
  using Offers = std::vector<MeetingPoint::Offer>;

  template <class Take>
  Status Meet(const MeetingPoint::Offer& offer, const Take& take) {
    MR_TRY(inbox_.failure());
    return meeting_point_->Meet(rank_, offer, take);
  }

  LocalCluster* const cluster_;
  const int number_;
  int rank_ = 0;
  std::vector<Rank*> ranks_;
  std::shared_ptr<MeetingPoint> meeting_point_;
  std::atomic<int64_t> bytes_sent_{0};
  Inbox inbox_;
  std::jthread thread_;  ///< last member: ends before what it uses
};

LocalCluster::LocalCluster(int size) {
  for (int r = 0; r < size; ++r) ranks_.push_back(std::make_unique<Rank>(this, r));
  Begin();
}

LocalCluster::~LocalCluster() {
  // Stop all first: the receiver of one can send to another.
  for (const auto& rank : ranks_) rank->Stop();
}

Communicator& LocalCluster::rank(int r) const { return *ranks_[static_cast<size_t>(r)]; }

void LocalCluster::Begin() {
  left_.clear();
  for (const auto& rank : ranks_) {
    if (!lost_.contains(rank->number())) left_.push_back(rank.get());
  }
  meeting_point_ = std::make_shared<MeetingPoint>(static_cast<int>(left_.size()));
  for (size_t r = 0; r < left_.size(); ++r) left_[r]->Begin(static_cast<int>(r), left_, meeting_point_);
  shrinking_ = 0;
  ++rounds_;
}

void LocalCluster::Lose(int number) {
  const std::lock_guard lock(mutex_);
  if (!lost_.insert(number).second) return;
  const Status lost = LostRank(ranks_[static_cast<size_t>(number)]->rank(), static_cast<int>(left_.size()));
  // Also notifies ranks that knew already and wait for this one to shrink with them.
  for (Rank* const rank : left_) rank->Fail(lost);
  // Last: a rank that notices it here must also see its other calls fail.
  meeting_point_->Fail(lost);
  changed_.notify_all();
}

bool LocalCluster::Shrink(const Rank& rank) {
  std::unique_lock lock(mutex_);
  const auto is_lost = [this](const Rank* r) { return lost_.contains(r->number()); };
  const auto lost = [&] { return std::count_if(left_.begin(), left_.end(), is_lost); };
  if (lost() == 0 || is_lost(&rank)) return false;
  ++shrinking_;
  const uint64_t round = rounds_;
  const auto are_all_here = [&] { return shrinking_ + static_cast<size_t>(lost()) == left_.size(); };
  changed_.wait(lock, [&] { return rounds_ != round || is_lost(&rank) || are_all_here(); });
  if (rounds_ != round) return true;
  if (is_lost(&rank)) {
    --shrinking_;
    return false;
  }
  Begin();
  changed_.notify_all();
  return true;
}

}  // namespace millrace
