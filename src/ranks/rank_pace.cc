#include "ranks/rank_pace.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/elapsed.h"
#include "core/wire.h"

namespace millrace {
namespace {

constexpr int64_t kNowAndThenNanoseconds = 50'000'000;

}  // namespace

RankPace::RankPace(RankCalls& calls, Tell tell, Events events)
    : calls_(&calls),
      tell_(tell),
      events_(std::move(events)),
      clocks_(static_cast<size_t>(calls.communicator().size())) {
  calls_->Serve(RankService::kMeeting, [this](int from, std::string_view request, std::string* /*answer*/) {
    WireReader in(request);
    const auto message = in.Get<Message>();
    if (in.ok()) Take(from, message);
    return Status::Ok();
  });
}

RankPace::~RankPace() { calls_->Serve(RankService::kMeeting, nullptr); }

void RankPace::StartPass(int64_t pass, int64_t turn) {
  const std::lock_guard lock(mutex_);
  pass_ = pass;
  turn_ = turn;
  for (Clock& clock : clocks_) clock = {.ended_pass = clock.ended_pass};
}

Status RankPace::TellOthers(const Message& message) {
  std::string bytes;
  WireWriter(&bytes).Put(message);
  for (int r = 0; r < calls_->communicator().size(); ++r) {
    if (r != rank()) MR_TRY(calls_->Tell(r, RankService::kMeeting, bytes));
  }
  return Status::Ok();
}

RankPace::Message RankPace::Advance(int rank, int64_t batches, int64_t examples) {
  Clock& clock = clocks_[static_cast<size_t>(rank)];
  // One that a meeting overtook says what is known.
  if (batches <= clock.batches) return {};
  Message more{What::kClock, pass_, batches - clock.batches, examples - clock.examples};
  clock.batches = batches;
  clock.examples = examples;
  return more;
}

void RankPace::Take(int from, const Message& message) {
  bool is_due = false;
  Message more;
  {
    const std::lock_guard lock(mutex_);
    switch (message.what) {
      case What::kCall: called_ = std::max(called_, message.number); break;
      case What::kEndTurn:
        if (message.number == pass_) clocks_[static_cast<size_t>(from)].has_ended_turn = true;
        break;
      case What::kEnd: clocks_[static_cast<size_t>(from)].ended_pass = message.number; break;
      case What::kClock:
        if (message.number == pass_) more = Advance(from, message.batches, message.examples);
        break;
    }
    is_due = IsDue();
  }
  if (more.batches > 0) events_.on_others(more.batches, more.examples);
  if (is_due) events_.on_due();
}

bool RankPace::IsDue() const {
  return called_ >= meeting_ ||
         std::all_of(clocks_.begin(), clocks_.end(), [this](const Clock& clock) { return clock.ended_pass == pass_; });
}

bool RankPace::is_due() const {
  const std::lock_guard lock(mutex_);
  return IsDue();
}

Status RankPace::Trained(int64_t examples) {
  Message mine{What::kClock};
  {
    const std::lock_guard lock(mutex_);
    Clock& clock = clocks_[static_cast<size_t>(rank())];
    ++clock.batches;
    clock.examples += examples;
    const int64_t now = SteadyNanoseconds();
    const bool is_waited_for = tell_ == Tell::kEveryBatch || clock.batches <= turn_;
    if (!is_waited_for && now - last_told_ < kNowAndThenNanoseconds) return Status::Ok();
    last_told_ = now;
    mine.number = pass_;
    mine.batches = clock.batches;
    mine.examples = clock.examples;
  }
  return TellOthers(mine);
}

template <class MayGo>
Status RankPace::WaitUntil(const MayGo& may_go, const std::stop_token& stop) {
  const auto is_over = [&] {
    const std::lock_guard lock(mutex_);
    return may_go();
  };
  return is_over() ? Status::Ok() : calls_->WaitUntil(is_over, stop);
}

Status RankPace::WaitForOthers(int64_t ahead, const std::stop_token& stop) {
  const Clock& mine = clocks_[static_cast<size_t>(rank())];
  return WaitUntil(
      [&] {
        return std::all_of(clocks_.begin(), clocks_.end(), [&](const Clock& clock) {
          return clock.ended_pass == pass_ || mine.batches - clock.batches <= ahead;
        });
      },
      stop);
}

bool RankPace::HasHadTurn(size_t rank) const {
  const Clock& clock = clocks_[rank];
  return clock.batches >= turn_ || clock.has_ended_turn || clock.ended_pass == pass_;
}

bool RankPace::TakesTurns() const {
  for (size_t r = 0; r < clocks_.size(); ++r) {
    if (!HasHadTurn(r)) return true;
  }
  return false;
}

bool RankPace::takes_turns() const {
  const std::lock_guard lock(mutex_);
  return TakesTurns();
}

void RankPace::EndTurn() {
  Message end{What::kEndTurn};
  {
    const std::lock_guard lock(mutex_);
    Clock& clock = clocks_[static_cast<size_t>(rank())];
    if (HasHadTurn(static_cast<size_t>(rank()))) return;
    clock.has_ended_turn = true;
    end.number = pass_;
  }
  // Workers of this rank wait, too. A rank that is lost ends their wait.
  (void)TellOthers(end).ok();
  calls_->Wake();
}

bool RankPace::EndsTurn() const {
  const std::lock_guard lock(mutex_);
  return clocks_[static_cast<size_t>(rank())].batches + 1 == turn_;
}

int64_t RankPace::batches() const {
  const std::lock_guard lock(mutex_);
  return clocks_[static_cast<size_t>(rank())].batches;
}

Status RankPace::WaitForTurn(const std::stop_token& stop) {
  const auto me = static_cast<size_t>(rank());
  return WaitUntil(
      [&] {
        if (HasHadTurn(me)) return !TakesTurns();
        for (size_t r = 0; r < me; ++r) {
          if (!HasHadTurn(r)) return false;
        }
        return true;
      },
      stop);
}

Status RankPace::WaitForEndOfTurns(const std::stop_token& stop) {
  return WaitUntil([&] { return !TakesTurns(); }, stop);
}

void RankPace::Call() {
  Message call{What::kCall};
  {
    const std::lock_guard lock(mutex_);
    if (called_here_ == meeting_) return;
    call.number = called_here_ = meeting_;
    called_ = std::max(called_, meeting_);
  }
  // A rank that is lost is told of by the meeting.
  (void)TellOthers(call).ok();
  events_.on_due();
}

Status RankPace::End() {
  Message end{What::kEnd};
  bool is_new = false;
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    Clock& clock = clocks_[static_cast<size_t>(rank())];
    is_new = clock.ended_pass != pass_;
    end.number = clock.ended_pass = pass_;
    is_due = IsDue();
  }
  // It waits for nothing, and says whether a rank is lost.
  if (!is_new) return calls_->communicator().WaitUntil([] { return true; });
  MR_TRY(TellOthers(end));
  if (is_due) events_.on_due();
  return Status::Ok();
}

Result<bool> RankPace::Meet(std::span<int64_t> sums) {
  const size_t ranks = clocks_.size();
  const auto me = static_cast<size_t>(rank());
  std::vector<int64_t> all(sums.begin(), sums.end());
  {
    const std::lock_guard lock(mutex_);
    const Clock& mine = clocks_[me];
    all.resize(sums.size() + 3 * ranks);
    int64_t* const clocks = all.data() + sums.size();
    clocks[3 * me] = mine.batches;
    clocks[3 * me + 1] = mine.examples;
    clocks[3 * me + 2] = mine.ended_pass == pass_ ? 1 : 0;
  }
  MR_TRY(calls_->communicator().SumOverRanks(all));
  std::copy_n(all.begin(), sums.size(), sums.begin());
  bool have_all_ended = true;
  Message more;
  {
    const std::lock_guard lock(mutex_);
    ++meeting_;
    for (size_t r = 0; r < ranks; ++r) {
      const int64_t* const clock = all.data() + sums.size() + 3 * r;
      have_all_ended = have_all_ended && clock[2] != 0;
      if (r == me) continue;
      const Message theirs = Advance(static_cast<int>(r), clock[0], clock[1]);
      more.batches += theirs.batches;
      more.examples += theirs.examples;
    }
  }
  if (more.batches > 0) events_.on_others(more.batches, more.examples);
  return have_all_ended;
}

}  // namespace millrace
