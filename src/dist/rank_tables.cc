#include "dist/rank_tables.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "dist/part_of.h"
#include "dist/wire.h"

namespace millrace {
namespace {

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

RankTables::RankTables(RankCalls& calls) : calls_(&calls), owners_(kVirtualShards) {
  for (int r = 0; r < ranks(); ++r) {
    const ShardRange shards = ShardsOf(r);
    std::fill(owners_.begin() + shards.begin, owners_.begin() + shards.end, r);
  }
  calls_->Serve(RankService::kTables, [this](int /*from*/, std::string_view request, std::string* answer) {
    return Answer(request, answer);
  });
}

RankTables::~RankTables() { calls_->Serve(RankService::kTables, nullptr); }

ShardRange RankTables::ShardsOf(int rank) const {
  const auto [first, end] = PartOf(kVirtualShards, rank, ranks());
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
}

void RankTables::Add(const std::string& table, SparseTable* part) {
  const std::lock_guard lock(mutex_);
  parts_[table] = part;
}

void RankTables::Remove(const std::string& table) {
  const std::lock_guard lock(mutex_);
  parts_.erase(table);
}

Status RankTables::Ask(Request what, const std::string& table, std::span<const std::optional<std::string>> payloads,
                       std::vector<std::string>* answers) {
  std::vector<std::optional<std::string>> requests(payloads.size());
  for (size_t r = 0; r < payloads.size(); ++r) {
    if (!payloads[r].has_value()) continue;
    WireWriter out(&requests[r].emplace());
    out.Put(what);
    out.PutText(table);
    *requests[r] += *payloads[r];
  }
  return calls_->Ask(RankService::kTables, requests, answers);
}

Status RankTables::Answer(std::string_view request, std::string* answer) {
  WireReader in(request);
  const auto what = in.Get<Request>();
  const std::string_view table = in.GetText();
  SparseTable* part = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = parts_.find(table);
    if (found == parts_.end()) return NotFound("there is no table \"" + std::string(table) + "\" here");
    part = found->second;
  }
  WireWriter out(answer);
  switch (what) {
    case Request::kPull: return ServePull(*part, &in, &out);
    case Request::kSave: return ServeSave(*part, &in, answer);
    case Request::kStats: out.Put(part->stats()); return Status::Ok();
    case Request::kFindNonFinite: out.Put(part->FindNonFinite()); return Status::Ok();
  }
  return Internal("another rank asks for something unknown");
}

}  // namespace millrace
