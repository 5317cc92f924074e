#include "ranks/rank_tables.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/words.h"
#include "kernels/racy.h"
#include "ranks/part_of.h"
#include "ranks/rank_files.h"
#include "ranks/rank_group.h"
#include "ranks/row_wire.h"
#include "table/counted_table.h"
#include "table/row_policy.h"

namespace millrace {
namespace {

Status ServeSave(const SparseTable& part, WireReader* in, std::string* answer) {
  const auto shards = in->Get<ShardRange>();
  const auto content = in->Get<TableContent>();
  std::ostringstream bytes;
  MR_TRY(part.Save(shards, content, bytes));
  answer->append(std::move(bytes).str());
  return Status::Ok();
}

/// What came of the file, and where and why nothing did.
Status ServeSaveFile(int rank, const SparseTable& part, WireReader* in, WireWriter* out) {
  const OwnersFile file = GetOwnersFile(in);
  if (!in->ok()) return Internal("what another rank wants to be saved ends too soon");
  MR_ASSIGN(const ShardWriter written, WriteOwnersFile(part, file).Context("host " + HostName()));
  out->Put(written.sum);
  out->PutText("rank " + std::to_string(rank) + " (" + HostName() + "): " + written.reason);
  return Status::Ok();
}

}  // namespace

RankTables::RankTables(RankCalls& calls)
    : calls_(&calls),
      owners_(kVirtualShards),
      lists_(owners_, calls.communicator().size()),
      known_(calls.communicator().size()) {
  FindOwners();
  calls_->Serve(RankService::kTables, [this](int from, std::string_view request, std::string* answer) {
    return Answer(from, request, answer);
  });
}

RankTables::~RankTables() { calls_->Serve(RankService::kTables, nullptr); }

Status RankTables::SetServers(int servers) {
  if (servers == servers_) return Status::Ok();
  {
    const std::lock_guard lock(mutex_);
    if (!parts_.empty()) {
      return InvalidConfig(
          "dist.servers: table \"" + parts_.begin()->first + "\" has its rows where " + std::to_string(servers_) +
          " ranks serve, and is still in use; let go of it before a job of " + std::to_string(servers));
    }
  }
  servers_ = servers;
  FindOwners();
  return Status::Ok();
}

void RankTables::FindOwners() {
  for (int r = 0; r < ranks(); ++r) {
    const ShardRange shards = ShardsOf(r);
    std::fill(owners_.begin() + shards.begin, owners_.begin() + shards.end, r);
  }
}

ShardRange RankTables::ShardsOf(int rank) const {
  const int first_owner = servers_ > 0 ? trainers() : 0;
  if (rank < first_owner) return {};
  const auto [first, end] = PartOf(kVirtualShards, rank - first_owner, ranks() - first_owner);
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
}

void RankTables::Add(const std::string& table, Part part) {
  const std::lock_guard lock(mutex_);
  parts_[table].push_back(std::move(part));
}

std::pair<int64_t, int64_t> RankTables::RowsHere() {
  const std::lock_guard lock(mutex_);
  std::pair<int64_t, int64_t> here;
  for (const auto& [name, parts] : parts_) {
    if (parts.empty()) continue;
    const TableStats stats = parts.back().rows->stats();
    here.first += stats.rows;
    here.second += stats.bytes;
  }
  return here;
}

void RankTables::Remove(const std::string& table, const SparseTable* rows) {
  const std::lock_guard answering(answering_);
  {
    const std::lock_guard lock(mutex_);
    const auto found = parts_.find(table);
    if (found == parts_.end()) return;
    std::erase_if(found->second, [rows](const Part& part) { return part.rows == rows; });
    if (found->second.empty()) parts_.erase(found);
  }
  ForgetRows(rows);
}

void RankTables::ForgetRows(const SparseTable* part) {
  const std::lock_guard lock(known_mutex_);
  known_.ForgetRows(part);
}

void RankTables::Start(Request what, const std::string& table, WireWriter* request) {
  request->Put(what);
  request->PutText(table);
}

Status RankTables::Flush() {
  std::vector<std::function<Status()>> flushes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, parts] : parts_) {
      for (const Part& part : parts) flushes.push_back(part.flush);
    }
  }
  Status flushed;
  for (const auto& flush : flushes) {
    if (Status one = flush(); flushed.ok()) flushed = std::move(one);
  }
  return flushed;
}

void RankTables::CountApplied(std::atomic<int64_t>& applied, int64_t seen) {
  const int64_t late = applied.fetch_add(1, std::memory_order_relaxed) - seen;
  ++applied_;
  late_ += late;
  for (int64_t latest = latest_; late > latest && !latest_.compare_exchange_weak(latest, late);) continue;
}

void RankTables::GatherFiles(const std::string& path, std::string_view reason) {
  if (gathers_files_.exchange(true)) return;
  Say("warning: the owner of its rows cannot write \"" + path + "\", which rank " + std::to_string(rank()) +
      " has made: " + std::string(reason) +
      "; that rank gathers the rows of all tables from now on, and writes them; " +
      "use an output folder that all ranks see and may write\n");
}

Status RankTables::AnswerPull(int from, const Part& part, WireReader* in, WireWriter* out) {
  const std::lock_guard lock(known_mutex_);
  PeerKeyLists::List* const list = known_.Take(from, in);
  const auto mode = in->Get<PullMode>();
  const auto wire = in->Get<WireFloat>();
  if (list == nullptr || !in->ok()) return Internal("a pull of another rank ends too soon");
  out->Put(part.applied->load(std::memory_order_relaxed));
  RowBatch& rows = mode == PullMode::kInsert ? list->rows[part.rows] : rows_;
  MR_TRY(part.rows->Pull(list->keys, mode, &rows));
  out->PutAll(rows.missing());
  const auto dim = static_cast<size_t>(part.rows->shape().dim);
  values_.resize(rows.size() * dim);
  for (size_t i = 0; i < rows.size(); ++i) racy::Best().copy_row(rows.weights()[i], values_.data() + i * dim, dim);
  PutRows(values_, part.rows->shape(), wire, out);
  return Status::Ok();
}

Status RankTables::AnswerPush(int from, const Part& part, WireReader* in) {
  const std::lock_guard lock(known_mutex_);
  PeerKeyLists::List* const list = known_.Take(from, in);
  const auto wire = in->Get<WireFloat>();
  const auto seen = in->Get<int64_t>();
  PushContext context{.lr = in->Get<float>(), .locks = part.locks};
  context.examples = in->Get<int32_t>();
  GetRows(in, part.rows->shape(), wire, &values_);
  if (list == nullptr || !in->ok()) return Internal("a push of another rank ends too soon");
  RowBatch& rows = list->rows[part.rows];
  if (rows.table() != part.rows) MR_TRY(part.rows->Pull(list->keys, PullMode::kInsert, &rows));
  CountApplied(*part.applied, seen);
  return part.rows->Push(rows, values_, context);
}

Status RankTables::AnswerCopyRows(const Part& part, WireReader* in, WireWriter* out) {
  const std::lock_guard lock(known_mutex_);
  in->GetAll(&keys_);
  const auto wire = in->Get<WireFloat>();
  const auto seen = in->Get<int64_t>();
  const auto lr = in->Get<float>();
  in->GetFloats(wire, &values_);
  in->GetAll(&squares_);
  auto* const table = dynamic_cast<ReplicaSource*>(part.rows);
  const size_t floats = keys_.size() * static_cast<size_t>(part.rows->shape().row_floats);
  const size_t squares = !values_.empty() && table != nullptr && table->row_policy().has_squares() ? keys_.size() : 0;
  if (table == nullptr || !in->ok() || (!values_.empty() && values_.size() != floats) || squares_.size() != squares) {
    return Internal("another rank's copies of rows are of another table");
  }
  MR_TRY(part.rows->Pull(keys_, PullMode::kInsert, &rows_));
  if (!values_.empty()) CountApplied(*part.applied, seen);
  table->AddToRows(rows_, {values_, squares_, lr}, &now_);
  out->Put(part.applied->load(std::memory_order_relaxed));
  out->PutFloats(now_, wire);
  return Status::Ok();
}

Status RankTables::AnswerCounted(Request what, const Part& part, WireReader* in, WireWriter* out) {
  CountedTable* const table = AsCounted(part.rows);
  if (table == nullptr) return Internal("table \"" + part.rows->shape().name + "\" counts no shows and clicks here");
  switch (what) {
    case Request::kShrink: {
      ForgetRows(part.rows);
      MR_ASSIGN(const ShrinkReport shrunk, table->Shrink(in->Get<int32_t>()));
      out->Put(shrunk);
      return Status::Ok();
    }
    case Request::kCount: {
      MR_ASSIGN(const CountedRows counted, table->Count());
      out->Put(counted);
      return Status::Ok();
    }
    default: return table->WasSaved(in->Get<TableContent>());
  }
}

Status RankTables::Answer(int from, std::string_view request, std::string* answer) {
  WireReader in(request);
  const auto what = in.Get<Request>();
  const std::string_view table = in.GetText();
  const std::lock_guard answering(answering_);
  Part part;
  {
    const std::lock_guard lock(mutex_);
    const auto found = parts_.find(table);
    if (found == parts_.end()) return NotFound("there is no table \"" + std::string(table) + "\" here");
    part = found->second.back();
  }
  WireWriter out(answer);
  switch (what) {
    case Request::kPull: return AnswerPull(from, part, &in, &out);
    case Request::kPush: return AnswerPush(from, part, &in);
    case Request::kCopyRows: return AnswerCopyRows(part, &in, &out);
    case Request::kSave: return ServeSave(*part.rows, &in, answer);
    case Request::kSaveFile: return ServeSaveFile(rank(), *part.rows, &in, &out);
    case Request::kStats: out.Put(part.rows->stats()); return Status::Ok();
    case Request::kBeginChanges: ResetLocalChanges(*part.rows); return Status::Ok();
    case Request::kCountChanges: {
      MR_ASSIGN(const ChangedRows changed, CountChangesOf(*part.rows));
      out.Put(changed);
      return Status::Ok();
    }
    case Request::kFindNonFinite: out.Put(part.rows->FindNonFinite()); return Status::Ok();
    case Request::kShrink:
    case Request::kWasSaved:
    case Request::kCount: return AnswerCounted(what, part, &in, &out);
  }
  return Internal("another rank asks for something unknown");
}

}  // namespace millrace
