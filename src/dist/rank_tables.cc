#include "dist/rank_tables.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/caught.h"
#include "dist/wire.h"

namespace millrace {
namespace {

enum class Kind : uint8_t { kRequest, kAnswer };

void PutStatus(const Status& status, WireWriter* out) {
  out->Put(static_cast<int32_t>(status.code()));
  if (!status.ok()) out->PutText(status.message());
}

Status GetStatus(WireReader* in) {
  const auto code = static_cast<StatusCode>(in->Get<int32_t>());
  if (!in->ok()) return Internal("a message of another rank ends too soon");
  return code == StatusCode::kOk ? Status::Ok() : Status(code, std::string(in->GetText()));
}

Status ServePull(SparseTable& part, WireReader* in, WireWriter* out) {
  const auto mode = in->Get<PullMode>();
  std::vector<uint64_t> keys;
  in->GetAll(&keys);
  if (!in->ok()) return Internal("a pull of another rank ends too soon");
  RowBatch rows;
  MR_TRY(part.Pull(keys, mode, &rows));
  out->PutAll(rows.missing());
  const auto dim = static_cast<size_t>(part.shape().dim);
  std::vector<float> values(keys.size() * dim);
  for (size_t i = 0; i < keys.size(); ++i) std::copy_n(rows.weights()[i], dim, values.data() + i * dim);
  out->PutAll(std::span<const float>(values));
  return Status::Ok();
}

Status ServeSave(const SparseTable& part, WireReader* in, std::string* answer) {
  const auto shards = in->Get<ShardRange>();
  const auto content = in->Get<TableContent>();
  std::ostringstream bytes;
  MR_TRY(part.Save(shards, content, bytes));
  answer->append(std::move(bytes).str());
  return Status::Ok();
}

}  // namespace

RankTables::RankTables(Communicator& communicator) : communicator_(&communicator), owners_(kVirtualShards) {
  for (int r = 0; r < communicator.size(); ++r) {
    const ShardRange shards = ShardsOf(r);
    std::fill(owners_.begin() + shards.begin, owners_.begin() + shards.end, r);
  }
  communicator_->SetReceiver(this);
}

RankTables::~RankTables() { communicator_->SetReceiver(nullptr); }

ShardRange RankTables::ShardsOf(int rank) const {
  const auto ranks = static_cast<uint64_t>(communicator_->size());
  const auto r = static_cast<uint64_t>(rank);
  return {static_cast<uint32_t>(r * kVirtualShards / ranks), static_cast<uint32_t>((r + 1) * kVirtualShards / ranks)};
}

void RankTables::Add(const std::string& table, SparseTable* part) {
  const std::lock_guard lock(mutex_);
  parts_[table] = part;
}

void RankTables::Remove(const std::string& table) {
  const std::lock_guard lock(mutex_);
  parts_.erase(table);
}

Status RankTables::AskRanks(Ask what, const std::string& table, std::span<const std::optional<std::string>> payloads,
                            std::vector<std::string>* answers) {
  Call call;
  call.answers.resize(payloads.size());
  call.open =
      static_cast<int>(std::count_if(payloads.begin(), payloads.end(), [](const auto& p) { return p.has_value(); }));
  answers->assign(payloads.size(), "");
  if (call.open == 0) return Status::Ok();
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_call_++;
    calls_[number] = &call;
  }
  Status asked;
  for (size_t r = 0; r < payloads.size() && asked.ok(); ++r) {
    if (!payloads[r].has_value()) continue;
    std::string message;
    WireWriter out(&message);
    out.Put(Kind::kRequest);
    out.Put(number);
    out.Put(what);
    out.PutText(table);
    message += *payloads[r];
    asked = communicator_->Send(static_cast<int>(r), std::move(message));
  }
  if (asked.ok()) asked = communicator_->WaitUntil([&call] { return call.open.load() == 0; });
  {
    // An answer that comes late finds no call and is dropped.
    const std::lock_guard lock(mutex_);
    calls_.erase(number);
  }
  MR_TRY(std::move(asked));
  for (size_t r = 0; r < payloads.size(); ++r) {
    if (!payloads[r].has_value()) continue;
    WireReader in(call.answers[r]);
    MR_TRY(GetStatus(&in).Context("rank " + std::to_string(r)));
    (*answers)[r] = in.rest();
  }
  return Status::Ok();
}

void RankTables::OnMessage(int from, std::string message) {
  WireReader in(message);
  if (in.Get<Kind>() == Kind::kRequest) return Answer(from, in.rest());
  const auto number = in.Get<uint64_t>();
  const std::lock_guard lock(mutex_);
  const auto call = calls_.find(number);
  if (call == calls_.end()) return;
  call->second->answers[static_cast<size_t>(from)] = in.rest();
  --call->second->open;
}

void RankTables::Answer(int from, std::string_view request) {
  WireReader in(request);
  const auto number = in.Get<uint64_t>();
  const auto what = in.Get<Ask>();
  const std::string table(in.GetText());
  std::string answer;
  Status served = Caught("an answer to another rank", [&] { return Serve(what, table, in.rest(), &answer); });
  if (!served.ok()) answer.clear();
  std::string message;
  WireWriter out(&message);
  out.Put(Kind::kAnswer);
  out.Put(number);
  PutStatus(served, &out);
  message += answer;
  // Who asked is told of a lost rank by his own communicator.
  (void)communicator_->Send(from, std::move(message)).ok();
}

Status RankTables::Serve(Ask what, const std::string& table, std::string_view payload, std::string* answer) {
  SparseTable* part = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = parts_.find(table);
    if (found == parts_.end()) return NotFound("there is no table \"" + table + "\" here");
    part = found->second;
  }
  WireReader in(payload);
  WireWriter out(answer);
  switch (what) {
    case Ask::kPull: return ServePull(*part, &in, &out);
    case Ask::kSave: return ServeSave(*part, &in, answer);
    case Ask::kStats: out.Put(part->stats()); return Status::Ok();
    case Ask::kFindNonFinite: out.Put(part->FindNonFinite()); return Status::Ok();
  }
  return Internal("another rank asks for something unknown");
}

}  // namespace millrace
