#include "ranks/collective_order.h"

#include <algorithm>
#include <utility>

#include "core/wire.h"
#include "ranks/rank_group.h"

namespace millrace {

namespace {

enum class Word : uint8_t { kArrival, kDone };

}  // namespace

CollectiveOrder::CollectiveOrder(RankCalls& calls) : calls_(&calls) {
  calls_->Serve(RankService::kScript, [this](int from, std::string_view message, std::string* /*answer*/) {
    return OnMessage(from, message);
  });
}

CollectiveOrder::~CollectiveOrder() { calls_->Serve(RankService::kScript, nullptr); }

Status CollectiveOrder::Together(std::string_view call, std::string_view mine, std::vector<std::string>* all,
                                 const std::stop_token& stop) {
  if (has_ended_) {
    return Unavailable(
        std::string(call) +
        ": the ranks do not wait for each other any more, as an earlier call did not end on all of them; "
        "start the script again");
  }
  has_ended_ = true;  // unless this ends well
  ++number_;
  MR_TRY(TellOthers(call, mine));
  MR_TRY(calls_->WaitUntil([this] { return AreAllIn(number_); }, stop));
  if (!AreAllIn(number_)) return Cancelled(std::string(call) + ": interrupted while it waited for the other ranks");
  Arrivals arrivals;
  {
    const std::lock_guard lock(mutex_);
    arrivals = std::move(arrivals_.extract(number_).mapped());
  }
  MR_TRY(Compare(arrivals));
  all->clear();
  for (std::optional<Arrival>& arrival : arrivals) all->push_back(std::move(arrival->brought));
  has_ended_ = false;
  return Status::Ok();
}

Status CollectiveOrder::ByLeader(const std::string& call, const std::function<Status()>& work,
                                 const std::stop_token& stop) {
  if (rank() == 0) {
    Status done = work();
    std::string message;
    WireWriter out(&message);
    out.Put(Word::kDone);
    out.PutText(call);
    out.Put(static_cast<int32_t>(done.code()));
    out.PutText(HostName());
    out.PutText(done.message());
    // Who does not hear of it has lost this rank.
    for (int r = 1; r < ranks(); ++r) (void)calls_->Tell(r, RankService::kScript, message).ok();
    return done;
  }
  const auto is_done = [&] { return !done_[call].empty(); };
  const auto has_gone_on = [&] {
    const auto next = arrivals_.find(number_ + 1);
    return next != arrivals_.end() && !next->second.empty() && next->second[0].has_value();
  };
  MR_TRY(calls_->WaitUntil(
      [&] {
        const std::lock_guard lock(mutex_);
        return is_done() || has_gone_on();
      },
      stop));
  const std::lock_guard lock(mutex_);
  if (is_done()) {
    Status done = std::move(done_[call].front());
    done_[call].pop_front();
    return done;
  }
  if (!has_gone_on()) return Cancelled(call + ": interrupted while it waited for rank 0");
  return InvalidConfig(call + ": rank 0 does this for all ranks, and has gone on to " +
                       arrivals_.find(number_ + 1)->second[0]->call +
                       " without it; let rank 0 call it as well, or rank 0 alone");
}

Status CollectiveOrder::OnMessage(int from, std::string_view message) {
  WireReader in(message);
  if (in.Get<Word>() == Word::kDone) {
    const std::string call(in.GetText());
    const auto code = static_cast<StatusCode>(in.Get<int32_t>());
    const std::string_view host = in.GetText();
    const std::string_view text = in.GetText();
    if (!in.ok()) return Internal("rank 0 tells of a call that it has done, and ends too soon");
    const std::lock_guard lock(mutex_);
    done_[call].push_back(code == StatusCode::kOk ? Status::Ok() : OfRank(from, host, {code, std::string(text)}));
    return Status::Ok();
  }
  const auto number = in.Get<uint64_t>();
  Arrival arrival;
  arrival.call = in.GetText();
  arrival.host = in.GetText();
  arrival.brought = in.GetText();
  if (!in.ok()) return Internal("a call of another rank's script ends too soon");
  return Arrive(from, number, std::move(arrival));
}

Status CollectiveOrder::TellOthers(std::string_view call, std::string_view mine) {
  const std::string host = HostName();
  std::string message;
  WireWriter out(&message);
  out.Put(Word::kArrival);
  out.Put(number_);
  out.PutText(call);
  out.PutText(host);
  out.PutText(mine);
  for (int r = 0; r < ranks(); ++r) {
    if (r != rank()) MR_TRY(calls_->Tell(r, RankService::kScript, message));
  }
  return Arrive(rank(), number_, {std::string(call), host, std::string(mine)});
}

Status CollectiveOrder::Arrive(int rank, uint64_t number, Arrival arrival) {
  const std::lock_guard lock(mutex_);
  Arrivals& arrivals = arrivals_[number];
  arrivals.resize(static_cast<size_t>(ranks()));
  arrivals[static_cast<size_t>(rank)] = std::move(arrival);
  return Status::Ok();
}

bool CollectiveOrder::AreAllIn(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Arrivals& arrivals = arrivals_[number];
  return !arrivals.empty() && std::all_of(arrivals.begin(), arrivals.end(),
                                          [](const std::optional<Arrival>& arrival) { return arrival.has_value(); });
}

Status CollectiveOrder::Compare(const Arrivals& arrivals) const {
  const Arrival& first = *arrivals[0];
  for (int r = 1; r < ranks(); ++r) {
    const Arrival& other = *arrivals[static_cast<size_t>(r)];
    if (other.call == first.call) continue;
    return InvalidConfig("ranks run the same script and wait for each other in its calls, but rank 0 (" + first.host +
                         ") is in " + first.call + " and rank " + std::to_string(r) + " (" + other.host + ") in " +
                         other.call + "; let all ranks make the same calls in the same order");
  }
  return Status::Ok();
}

}  // namespace millrace
