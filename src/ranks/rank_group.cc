#include "ranks/rank_group.h"

#include <unistd.h>

#include "comm/solo_communicator.h"
#include "core/wire.h"
#include "ranks/part_of.h"

namespace millrace {

RankGroup::RankGroup(Communicator& communicator, RankRestarts* restarts)
    : communicator_(&communicator), restarts_(restarts), calls_(communicator), tables_(calls_), cancellation_(calls_) {}

RankGroup::RankGroup(std::unique_ptr<Communicator> own) : RankGroup(*own) { own_communicator_ = std::move(own); }

std::unique_ptr<RankGroup> RankGroup::Solo() {
  return std::unique_ptr<RankGroup>(new RankGroup(std::make_unique<SoloCommunicator>()));
}

std::pair<int, int> RankGroup::ShareOf(int count, int rank) const {
  if (rank >= trainers()) return {count, 0};
  const auto [first, end] = PartOf(static_cast<size_t>(count), rank, trainers());
  return {static_cast<int>(first), static_cast<int>(end - first)};
}

Status RankGroup::AgreeOnEnd(const Status& mine, const std::stop_token& asked) {
  if (!mine.ok()) cancellation_.GiveUp();
  const bool is_cut = mine.code() == StatusCode::kCancelled && !asked.stop_requested();
  MR_TRY(Agree(is_cut ? Status::Ok() : mine));
  return Agree(mine);
}

Status RankGroup::FromLeader(google::protobuf::MessageLite* message) {
  std::string bytes;
  if (leads()) bytes = message->SerializeAsString();
  MR_TRY(FromLeader(&bytes));
  return message->ParseFromString(bytes) ? Status::Ok() : Internal("a message of the leader came in pieces");
}

Status RankGroup::Agree(const Status& mine) {
  int64_t failed = mine.ok() ? 0 : 1;
  MR_TRY(communicator_->SumOverRanks({&failed, 1}));
  if (failed == 0) return Status::Ok();
  std::string text;
  if (!mine.ok()) {
    WireWriter out(&text);
    out.Put(static_cast<int32_t>(mine.code()));
    out.PutText(HostName());
    out.PutText(mine.message());
  }
  std::vector<std::string> all;
  MR_TRY(communicator_->AllToAll(std::vector<std::string>(static_cast<size_t>(size()), text), &all));
  for (int r = 0; r < size(); ++r) {
    const std::string& theirs = all[static_cast<size_t>(r)];
    if (theirs.empty()) continue;
    if (r == rank()) return mine;
    WireReader in(theirs);
    const auto code = static_cast<StatusCode>(in.Get<int32_t>());
    const std::string_view host = in.GetText();
    return OfRank(r, host, {code, std::string(in.GetText())});
  }
  return Internal("a rank failed and did not say how");
}

Status RankGroup::ToLeader(std::string mine, std::vector<std::string>* all) {
  std::vector<std::string> out(static_cast<size_t>(size()));
  out[0] = std::move(mine);
  return communicator_->AllToAll(out, all);
}

Status OfRank(int rank, std::string_view host, const Status& failure) {
  return Status(failure.code(), failure.message())
      .Context("rank " + std::to_string(rank) + " (" + std::string(host) + ")");
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown host";
}

}  // namespace millrace
