#include "comm/simulated_cluster.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "comm/rank_status.h"
#include "core/caught.h"
#include "core/crc32c.h"
#include "core/rng.h"

namespace millrace {
namespace {

constexpr std::string_view kBroadcast = "Broadcast";

/// A rank's data for a collective.
struct Offer {
  CollectiveCall call;
  std::span<const std::string> out = {};
  std::vector<std::string>* in = nullptr;
  std::span<int64_t> values = {};
  std::string* bytes = nullptr;
};

struct Message {
  std::string bytes;
  int64_t ready_at;
};

/// The simulation to which the calling thread belongs.
thread_local const void* own_simulation = nullptr;

bool Has(const std::vector<int>& ranks, int rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); }

}  // namespace

/// A run. Only the thread with the baton runs, and only it accesses members not marked as guarded by the mutex.
class SimulatedCluster::Simulation {
 public:
  Simulation(const SimulationOptions& options, std::vector<SimulatedEvent>* events);

  /// Runs the ranks' threads.
  Status Run(const std::function<void(Communicator&)>& body);

  // Calls of the ranks, which hold the baton.
  Status Check(int rank) const;
  void SetReceiver(int rank, MessageReceiver* receiver);
  Status Send(int rank, int to, std::string message);
  Status WaitUntil(int rank, const std::function<bool()>& done);
  Status Join(int rank, const Offer& offer);
  Status Shrink(int rank);
  /// By rank, the initial numbers of the remaining ranks. The functions above take initial numbers.
  const std::vector<int>& left() const { return left_; }

 private:
  using Kind = SimulatedEvent::Kind;
  enum class Doing : uint8_t { kRuns, kWaits, kMeets, kShrinks, kEnded };

  struct RankState {
    Doing doing = Doing::kRuns;
    const std::function<bool()>* done = nullptr;  ///< for kWaits
    std::string_view call = "WaitUntil";          ///< for kMeets
    size_t meeting = 0;                           ///< number of joined collectives, including this one
    MessageReceiver* receiver = nullptr;
    Status failure;
    bool is_lost = false;
    std::condition_variable has_baton;
  };
  /// A collective that some ranks have not left yet.
  struct Meeting {
    CollectiveCall first;
    int first_rank = 0;
    std::vector<const Offer*> offers;
    std::optional<std::string> broadcast;
    int came = 0;
    int left = 0;
  };

  int size() const { return options_.size; }
  RankState& At(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const RankState& At(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  std::deque<Message>& Way(int from, int to) {
    return ways_[static_cast<size_t>(from) * ranks_.size() + static_cast<size_t>(to)];
  }

  /// Processes events until `me` may continue, or, if it has ended, until another rank may; after the last, until none
  /// is left.
  void Switch(int me);
  std::vector<SimulatedEvent> Choices();
  void Happen(SimulatedEvent event);
  void Deliver(SimulatedEvent* event);
  void Meet(const SimulatedEvent& event);
  void LoseWhoIsDue();
  bool SkipTime();
  /// Restarts the ranks that wait in Shrink.
  void ShrinkAll();
  void FailAll(const Status& status);
  void Fail(int rank, const Status& status);
  std::string WhoWaits() const;
  bool AreApart(int a, int b) const;
  bool IsAnyoneApart() const;
  void GiveBaton(int rank);
  /// False if the run was aborted before it began.
  bool AwaitBaton(int rank);

  const SimulationOptions& options_;
  std::vector<SimulatedEvent>* const events_;
  Rng rng_;
  int64_t time_ = 0;
  std::deque<RankState> ranks_;            // deque: stable addresses
  std::vector<std::deque<Message>> ways_;  ///< by sender and receiver
  std::map<size_t, Meeting> meetings_;     ///< by RankState::meeting
  std::vector<SimulatedEvent> notices_;    ///< pending kTell events
  std::vector<bool> losses_done_;
  std::vector<int> left_;
  int shrunk_ = 0;  ///< number of shrinks
  bool is_delivering_ = false;
  Status failure_;  ///< failure of the run

  static constexpr int kNobody = -1;
  static constexpr int kAbandoned = -2;
  std::mutex mutex_;
  int holder_ = kNobody;  ///< holder of the baton; under mutex_
};

class SimulatedCluster::Rank : public Communicator {
 public:
  Rank(Simulation* simulation, int number) : simulation_(simulation), number_(number) { CountLeft(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void SetReceiver(MessageReceiver* receiver) override { simulation_->SetReceiver(number_, receiver); }

  Status Send(int to, std::string message) override {
    MR_TRY(CheckRank("sending to", to, size_));
    const auto bytes = static_cast<int64_t>(message.size());
    MR_TRY(simulation_->Send(number_, left_[static_cast<size_t>(to)], std::move(message)));
    if (to != rank_) bytes_sent_ += bytes;
    return Status::Ok();
  }
  Status WaitUntil(const std::function<bool()>& done) override { return simulation_->WaitUntil(number_, done); }

  Status AllToAll(std::span<const std::string> out, std::vector<std::string>* in) override {
    MR_TRY(CheckStrings(out.size(), size_));
    in->resize(out.size());
    MR_TRY(simulation_->Join(number_, {.call = {"AllToAll"}, .out = out, .in = in}));
    for (size_t r = 0; r < out.size(); ++r) {
      if (r != static_cast<size_t>(rank_)) bytes_sent_ += static_cast<int64_t>(out[r].size());
    }
    return Status::Ok();
  }
  Status SumOverRanks(std::span<int64_t> values) override {
    MR_TRY(simulation_->Join(number_, {.call = {"SumOverRanks", 0, values.size()}, .values = values}));
    if (size_ > 1) bytes_sent_ += static_cast<int64_t>(values.size_bytes());
    return Status::Ok();
  }
  Status Broadcast(int root, std::string* bytes) override {
    MR_TRY(CheckRank("broadcasting from", root, size_));
    MR_TRY(simulation_->Join(number_, {.call = {kBroadcast, root}, .bytes = bytes}));
    if (rank_ == root) bytes_sent_ += static_cast<int64_t>(bytes->size()) * (size_ - 1);
    return Status::Ok();
  }
  Status Barrier() override { return simulation_->Join(number_, {.call = {"Barrier"}}); }
  Status Shrink() override {
    MR_TRY(simulation_->Shrink(number_));
    CountLeft();
    return Status::Ok();
  }
  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  void CountLeft() {
    left_ = simulation_->left();
    size_ = static_cast<int>(left_.size());
    rank_ = static_cast<int>(std::find(left_.begin(), left_.end(), number_) - left_.begin());
  }

  Simulation* const simulation_;
  const int number_;
  std::vector<int> left_;  ///< initial numbers by rank
  int rank_ = 0;
  int size_ = 0;
  int64_t bytes_sent_ = 0;
};

SimulatedCluster::Simulation::Simulation(const SimulationOptions& options, std::vector<SimulatedEvent>* events)
    : options_(options),
      events_(events),
      rng_(options.seed),
      ranks_(static_cast<size_t>(options.size)),
      ways_(ranks_.size() * ranks_.size()),
      losses_done_(options.losses.size()),
      left_(ranks_.size()) {
  std::iota(left_.begin(), left_.end(), 0);
}

Status SimulatedCluster::Simulation::Run(const std::function<void(Communicator&)>& body) {
  const auto run_rank = [&](int rank) {
    if (!AwaitBaton(rank)) return;
    own_simulation = this;
    Status status = Caught("rank " + std::to_string(rank) + " of a simulation", [&] {
      Rank communicator(this, rank);
      body(communicator);
      return Status::Ok();
    });
    if (!status.ok() && failure_.ok()) failure_ = std::move(status);
    At(rank).doing = Doing::kEnded;
    At(rank).receiver = nullptr;
    Switch(rank);
  };
  Status started;
  {
    std::vector<std::jthread> threads;
    started = Caught("the threads of a simulation", [&] {
      for (int r = 0; r < size(); ++r) threads.emplace_back(run_rank, r);
      return Status::Ok();
    });
    if (started.ok()) {
      Switch(kNobody);
    } else {
      GiveBaton(kAbandoned);
    }
  }
  return started.ok() ? failure_ : started;
}

Status SimulatedCluster::Simulation::Check(int rank) const {
  if (own_simulation != this) return Internal("a thread that is no rank of the simulation used a rank's communicator");
  return At(rank).failure;
}

void SimulatedCluster::Simulation::SetReceiver(int rank, MessageReceiver* receiver) { At(rank).receiver = receiver; }

Status SimulatedCluster::Simulation::Send(int rank, int to, std::string message) {
  MR_TRY(Check(rank));
  const auto most = static_cast<uint64_t>(std::max<int64_t>(options_.longest_delay, 0)) + 1;
  Way(rank, to).push_back({std::move(message), time_ + (most > 1 ? static_cast<int64_t>(rng_.Below(most)) : 0)});
  if (!is_delivering_) Switch(rank);
  return Status::Ok();
}

Status SimulatedCluster::Simulation::WaitUntil(int rank, const std::function<bool()>& done) {
  MR_TRY(Check(rank));
  if (is_delivering_) return Internal("a receiver waits");
  RankState& state = At(rank);
  if (!done()) {
    state.doing = Doing::kWaits;
    state.done = &done;
  }
  Switch(rank);
  // Still set: not a message ended the waiting.
  if (std::exchange(state.done, nullptr) != nullptr) return state.failure;
  return Status::Ok();
}

Status SimulatedCluster::Simulation::Join(int rank, const Offer& offer) {
  MR_TRY(Check(rank));
  if (is_delivering_) return Internal("a receiver waits");
  RankState& state = At(rank);
  const size_t number = ++state.meeting;
  Meeting& meeting = meetings_[number];
  if (meeting.came == 0) {
    meeting.first = offer.call;
    meeting.first_rank = rank;
    meeting.offers.resize(ranks_.size());
  } else if (const Status same = CheckSameCall(meeting.first_rank, meeting.first, rank, offer.call); !same.ok()) {
    FailAll(same);
    return state.failure;
  }
  ++meeting.came;
  if (offer.bytes != nullptr && left_[static_cast<size_t>(offer.call.root)] == rank) {
    meeting.broadcast = *offer.bytes;
    ++meeting.left;
  } else {
    meeting.offers[static_cast<size_t>(rank)] = &offer;
    state.doing = Doing::kMeets;
    state.call = offer.call.name;
  }
  Switch(rank);
  if (state.is_lost) return state.failure;
  // Still registered: not the others ended the waiting.
  const auto found = meetings_.find(number);
  if (found != meetings_.end() && found->second.offers[static_cast<size_t>(rank)] != nullptr) {
    found->second.offers[static_cast<size_t>(rank)] = nullptr;
    return state.failure;
  }
  return Status::Ok();
}

Status SimulatedCluster::Simulation::Shrink(int rank) {
  if (own_simulation != this) return Check(rank);
  if (is_delivering_) return Internal("a receiver waits");
  RankState& state = At(rank);
  if (state.is_lost || !failure_.ok()) return state.failure;
  MR_TRY(CheckIsFailed(state.failure));
  if (std::none_of(left_.begin(), left_.end(), [&](int r) { return At(r).is_lost; })) return state.failure;
  state.doing = Doing::kShrinks;
  const int before = shrunk_;
  Switch(rank);
  return shrunk_ != before ? Status::Ok() : state.failure;
}

void SimulatedCluster::Simulation::ShrinkAll() {
  ++shrunk_;
  std::erase_if(left_, [&](int r) { return At(r).doing != Doing::kShrinks; });
  meetings_.clear();
  for (auto& way : ways_) way.clear();
  std::erase_if(notices_, [&](const auto& notice) { return !Has(left_, notice.from); });
  for (const int r : left_) {
    RankState& state = At(r);
    state.doing = Doing::kRuns;
    state.meeting = 0;
    state.failure = Status::Ok();
  }
}

void SimulatedCluster::Simulation::Switch(int me) {
  for (;;) {
    if (time_ >= options_.most_events && failure_.ok()) {
      FailAll(Internal("the ranks went on for more than " + std::to_string(options_.most_events) +
                       " events: " + WhoWaits()));
    }
    LoseWhoIsDue();
    const std::vector<SimulatedEvent> choices = Choices();
    if (choices.empty()) {
      if (std::all_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return r.doing == Doing::kEnded; })) return;
      if (!SkipTime()) FailAll(Internal("nobody can go on, and no message is under way: " + WhoWaits()));
      continue;
    }
    const SimulatedEvent event = choices[rng_.Below(choices.size())];
    Happen(event);
    if (event.kind != Kind::kRun) continue;
    if (event.to == me) return;
    const bool comes_back = me != kNobody && At(me).doing != Doing::kEnded;
    GiveBaton(event.to);
    if (comes_back) (void)AwaitBaton(me);
    return;
  }
}

std::vector<SimulatedEvent> SimulatedCluster::Simulation::Choices() {
  std::vector<SimulatedEvent> choices = notices_;
  for (int r = 0; r < size(); ++r) {
    if (At(r).doing == Doing::kRuns) choices.push_back({.kind = Kind::kRun, .to = r});
    if (At(r).receiver == nullptr || At(r).is_lost) continue;
    for (int from = 0; from < size(); ++from) {
      const std::deque<Message>& way = Way(from, r);
      if (way.empty() || way.front().ready_at > time_ || AreApart(from, r)) continue;
      choices.push_back({.kind = Kind::kDeliver, .from = from, .to = r});
    }
  }
  const auto shrinks = [&](int r) { return At(r).doing == Doing::kShrinks; };
  if (std::any_of(left_.begin(), left_.end(), shrinks) && std::all_of(left_.begin(), left_.end(), [&](int r) {
        return shrinks(r) || At(r).doing == Doing::kEnded || At(r).is_lost;
      })) {
    choices.push_back({.kind = Kind::kShrink, .from = kNobody, .to = kNobody});
  }
  for (const auto& [number, meeting] : meetings_) {
    std::vector<int> there;
    for (int r = 0; r < size(); ++r) {
      if (meeting.offers[static_cast<size_t>(r)] != nullptr && At(r).doing == Doing::kMeets) there.push_back(r);
    }
    if (meeting.first.name != kBroadcast) {
      const bool is_whole = there.size() == left_.size() && !IsAnyoneApart();
      if (is_whole) choices.push_back({.kind = Kind::kMeet, .from = kNobody, .to = kNobody});
    } else if (meeting.broadcast) {
      const int root = left_[static_cast<size_t>(meeting.first.root)];
      for (const int r : there) {
        if (!AreApart(root, r)) choices.push_back({.kind = Kind::kMeet, .from = root, .to = r});
      }
    }
  }
  return choices;
}

void SimulatedCluster::Simulation::Happen(SimulatedEvent event) {
  event.time = time_++;
  switch (event.kind) {
    case Kind::kDeliver: Deliver(&event); return;
    case Kind::kMeet: Meet(event); break;
    case Kind::kTell: {
      std::erase_if(notices_, [&](const auto& notice) { return notice.from == event.from && notice.to == event.to; });
      Fail(event.to, LostRank(event.from, size()));
      break;
    }
    case Kind::kShrink: ShrinkAll(); break;
    case Kind::kRun:
    case Kind::kLose: break;
  }
  events_->push_back(event);
}

void SimulatedCluster::Simulation::Deliver(SimulatedEvent* event) {
  std::deque<Message>& way = Way(event->from, event->to);
  std::string bytes = std::move(way.front().bytes);
  way.pop_front();
  event->checksum = Crc32c(0, bytes.data(), bytes.size());
  events_->push_back(*event);
  RankState& to = At(event->to);
  is_delivering_ = true;
  const Status status = Caught("taking a message of another rank", [&] {
    const auto from = std::find(left_.begin(), left_.end(), event->from);
    to.receiver->OnMessage(static_cast<int>(from - left_.begin()), std::move(bytes));
    if (to.doing == Doing::kWaits && (*to.done)()) {
      to.done = nullptr;
      to.doing = Doing::kRuns;
    }
    return Status::Ok();
  });
  is_delivering_ = false;
  if (!status.ok()) Fail(event->to, status);
}

void SimulatedCluster::Simulation::Meet(const SimulatedEvent& event) {
  // In a collective of all, every rank has the same number.
  const auto found = meetings_.find(At(event.to == kNobody ? left_[0] : event.to).meeting);
  Meeting& meeting = found->second;
  const auto leave = [&](int rank) {
    meeting.offers[static_cast<size_t>(rank)] = nullptr;
    At(rank).doing = Doing::kRuns;
    ++meeting.left;
  };
  if (event.to != kNobody) {
    *meeting.offers[static_cast<size_t>(event.to)]->bytes = *meeting.broadcast;
    leave(event.to);
  } else {
    std::vector<uint64_t> sums(meeting.first.values);
    const auto offer_of = [&](size_t r) { return meeting.offers[static_cast<size_t>(left_[r])]; };
    for (size_t r = 0; r < left_.size(); ++r) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<uint64_t>(offer_of(r)->values[i]);
    }
    for (size_t r = 0; r < left_.size(); ++r) {
      const Offer& offer = *offer_of(r);
      for (size_t i = 0; i < sums.size(); ++i) offer.values[i] = static_cast<int64_t>(sums[i]);
      for (size_t from = 0; from < offer.out.size(); ++from) (*offer.in)[from] = offer_of(from)->out[r];
    }
    for (const int r : left_) leave(r);
  }
  if (meeting.left == static_cast<int>(left_.size())) meetings_.erase(found);
}

void SimulatedCluster::Simulation::LoseWhoIsDue() {
  for (size_t i = 0; i < losses_done_.size(); ++i) {
    const SimulationOptions::Loss& loss = options_.losses[i];
    if (losses_done_[i] || loss.at > time_) continue;
    losses_done_[i] = true;
    RankState& lost = At(loss.rank);
    if (lost.doing == Doing::kEnded || lost.is_lost) continue;
    lost.is_lost = true;
    Happen({.kind = Kind::kLose, .from = loss.rank, .to = loss.rank});
    Fail(loss.rank, LostRank(loss.rank, size()));
    for (int r = 0; r < size(); ++r) {
      if (r != loss.rank) notices_.push_back({.kind = Kind::kTell, .from = loss.rank, .to = r});
    }
  }
}

bool SimulatedCluster::Simulation::SkipTime() {
  int64_t next = std::numeric_limits<int64_t>::max();
  for (const auto& partition : options_.partitions) {
    if (partition.begin <= time_ && time_ < partition.end) next = std::min(next, partition.end);
  }
  for (int r = 0; r < size(); ++r) {
    if (At(r).receiver == nullptr || At(r).is_lost) continue;
    for (int from = 0; from < size(); ++from) {
      const std::deque<Message>& way = Way(from, r);
      if (!way.empty() && way.front().ready_at > time_) next = std::min(next, way.front().ready_at);
    }
  }
  if (next == std::numeric_limits<int64_t>::max()) return false;
  time_ = next;
  return true;
}

void SimulatedCluster::Simulation::FailAll(const Status& status) {
  if (failure_.ok()) failure_ = status;
  for (int r = 0; r < size(); ++r) Fail(r, status);
}

void SimulatedCluster::Simulation::Fail(int rank, const Status& status) {
  RankState& state = At(rank);
  if (state.failure.ok()) state.failure = status;
  // A shrinking rank keeps waiting for the remaining ones, unless it is lost itself.
  const bool waits_on = state.doing == Doing::kShrinks && !state.is_lost && failure_.ok();
  if (state.doing != Doing::kEnded && !waits_on) state.doing = Doing::kRuns;
}

std::string SimulatedCluster::Simulation::WhoWaits() const {
  std::string text;
  for (int r = 0; r < size(); ++r) {
    const RankState& state = At(r);
    text += (r == 0 ? "rank " : ", rank ") + std::to_string(r);
    switch (state.doing) {
      case Doing::kRuns: text += " runs"; break;
      case Doing::kWaits: text += " waits in WaitUntil"; break;
      case Doing::kMeets: text += " waits in " + std::string(state.call); break;
      case Doing::kShrinks: text += " waits in Shrink"; break;
      case Doing::kEnded: text += " has ended"; break;
    }
    size_t untaken = 0;
    for (int from = 0; from < size(); ++from)
      untaken += ways_[static_cast<size_t>(from) * ranks_.size() + static_cast<size_t>(r)].size();
    if (untaken > 0 && state.receiver == nullptr) {
      text += " and has no receiver for " + std::to_string(untaken) + " messages";
    }
  }
  return text;
}

bool SimulatedCluster::Simulation::AreApart(int a, int b) const {
  return std::any_of(options_.partitions.begin(), options_.partitions.end(), [&](const auto& partition) {
    if (time_ < partition.begin || time_ >= partition.end) return false;
    return (Has(partition.one, a) && Has(partition.other, b)) || (Has(partition.one, b) && Has(partition.other, a));
  });
}

bool SimulatedCluster::Simulation::IsAnyoneApart() const {
  return std::any_of(options_.partitions.begin(), options_.partitions.end(), [&](const auto& partition) {
    return partition.begin <= time_ && time_ < partition.end && !partition.one.empty() && !partition.other.empty();
  });
}

void SimulatedCluster::Simulation::GiveBaton(int rank) {
  {
    const std::lock_guard lock(mutex_);
    holder_ = rank;
  }
  for (int r = 0; r < size(); ++r) {
    if (r == rank || rank == kAbandoned) At(r).has_baton.notify_one();
  }
}

bool SimulatedCluster::Simulation::AwaitBaton(int rank) {
  std::unique_lock lock(mutex_);
  At(rank).has_baton.wait(lock, [&] { return holder_ == rank || holder_ == kAbandoned; });
  return holder_ == rank;
}

std::string ToString(const SimulatedEvent& event) {
  constexpr const char* kNames[] = {"run", "deliver", "meet", "lose", "tell", "shrink"};
  std::string text = std::to_string(event.time) + " " + kNames[static_cast<size_t>(event.kind)] + " " +
                     std::to_string(event.from) + " to " + std::to_string(event.to);
  if (event.kind != SimulatedEvent::Kind::kDeliver) return text;
  constexpr char kDigits[] = "0123456789abcdef";
  text += " (";
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[(event.checksum >> shift) & 15];
  return text + ")";
}

SimulatedCluster::SimulatedCluster(SimulationOptions options) : options_(std::move(options)) {}
SimulatedCluster::~SimulatedCluster() = default;

Status SimulatedCluster::Run(const std::function<void(Communicator&)>& body) {
  events_.clear();
  if (options_.size < 1) return Internal("a simulation of " + std::to_string(options_.size) + " ranks");
  for (const auto& loss : options_.losses) MR_TRY(CheckRank("losing", loss.rank, options_.size));
  Simulation simulation(options_, &events_);
  return simulation.Run(body);
}

}  // namespace millrace
