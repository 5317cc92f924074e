#include "ranks/rank_restarts.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/elapsed.h"
#include "core/wire.h"
#include "ranks/rank_group.h"

namespace millrace {
namespace {

/// What a rank says of itself before it runs the job.
struct Member {
  int before = 0;  ///< its number among the ranks before
  bool has_ended = false;
  std::string host;
};

/// Everyone's, by rank. A collective.
Status Introduce(Communicator& communicator, const Member& mine, std::vector<Member>* all) {
  std::string bytes;
  WireWriter out(&bytes);
  out.Put(static_cast<int32_t>(mine.before));
  out.Put(static_cast<int32_t>(mine.has_ended));
  out.PutText(mine.host);
  std::vector<std::string> in;
  MR_TRY(communicator.AllToAll(std::vector<std::string>(static_cast<size_t>(communicator.size()), bytes), &in));
  all->clear();
  for (const std::string& theirs : in) {
    WireReader reader(theirs);
    Member& member = all->emplace_back();
    member.before = reader.Get<int32_t>();
    member.has_ended = reader.Get<int32_t>() != 0;
    member.host = reader.GetText();
  }
  return Status::Ok();
}

/// Of the ranks of `before` those that are not among `now`.
std::string Missing(const std::vector<Member>& before, const std::vector<Member>& now) {
  std::string text;
  for (size_t r = 0; r < before.size(); ++r) {
    const bool is_left =
        std::any_of(now.begin(), now.end(), [r](const Member& member) { return member.before == static_cast<int>(r); });
    if (is_left) continue;
    text += (text.empty() ? "" : ", ") + std::string("rank ") + std::to_string(r) + " (" + before[r].host + ")";
  }
  return text;
}

/// Whether what a job ended with may be that a rank is lost.
bool MayBeLoss(const Status& ended) { return ended.ok() || ended.code() == StatusCode::kUnavailable; }

}  // namespace

void RankRestarts::GoOn(int64_t examples) {
  if (std::exchange(has_gone_on_, true)) return;
  seconds_ += SecondsSince(noticed_);
  replayed_ += std::max<int64_t>(0, reached_ - examples);
}

Status RunOnRanks(Communicator& communicator, const std::stop_token& stop,
                  const std::function<Status(RankGroup& ranks)>& run,
                  const std::function<void(const Status& failure)>& tell) {
  RankRestarts restarts;
  std::vector<Member> members;
  Member mine{communicator.rank(), false, HostName()};
  Status ended;
  while (true) {
    std::vector<Member> now;
    Status all = Introduce(communicator, mine, &now);
    if (all.ok()) {
      if (!members.empty()) restarts.lost_.push_back(Missing(members, now));
      members = std::move(now);
      mine.before = communicator.rank();
      const bool have_all_ended =
          std::all_of(members.begin(), members.end(), [](const Member& member) { return member.has_ended; });
      // Somebody was lost behind the end of the job.
      if (have_all_ended) return Status::Ok();
      RankGroup ranks(communicator, &restarts);
      ended = run(ranks);
      if (!MayBeLoss(ended) && ranks.leads()) tell(ended);
      // One that others may still ask for rows waits for them. Where one is lost there is nobody to wait for.
      all = communicator.Barrier();
      if (all.ok() && ended.code() == StatusCode::kUnavailable) {
        if (ranks.leads()) tell(ended);
        all = communicator.Barrier();
      }
      if (all.ok() || !MayBeLoss(ended)) return ended;
    } else if (members.empty()) {
      ended = all;
    }
    if (restarts.has_gone_on_) restarts.noticed_ = RankRestarts::Clock::now();
    restarts.has_gone_on_ = false;
    mine.has_ended = ended.ok();
    const bool leads = communicator.rank() == 0;
    if (!stop.stop_requested()) {
      const Status shrunk = communicator.Shrink();
      if (shrunk.ok()) continue;
      VLOG(1) << "rank " << communicator.rank() << " does not go on: " << shrunk.ToString();
    }
    if (!ended.ok() && leads) tell(ended);
    return ended;
  }
}

}  // namespace millrace
