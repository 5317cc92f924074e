// A table of which each rank has a part (dist/rank_tables.h).

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

#include "dist/rank_tables.h"
#include "dist/wire.h"
#include "kernels/racy.h"
#include "model.pb.h"
#include "table/table_io.h"

namespace millrace {
namespace {

class RankTable final : public SparseTable {
 public:
  RankTable(std::unique_ptr<SparseTable> part, RankTables& ranks, const RankTableOptions& options)
      : part_(std::move(part)),
        ranks_(&ranks),
        options_(options),
        mine_(ranks.ShardsOf(ranks.rank())),
        seen_(static_cast<size_t>(ranks.ranks())) {
    ranks_->Add(shape().name, {part_.get(), &applied_, [this] { return Flush(0); }});
  }
  ~RankTable() override {
    // Answers are written to the pushes that are under way. What went wrong with one ended the run before.
    while (!under_way_.empty()) (void)Flush(0).ok();
    ranks_->Remove(shape().name);
  }

  Status Pull(std::span<const uint64_t> keys, PullMode mode, RowBatch* out) override;
  Status Push(const RowBatch& rows, std::span<const float> gradients, const PushContext& context) override;
  Status Save(ShardRange shards, TableContent content, std::ostream& out) const override;
  Status Load(ShardRange shards, std::istream& in) override {
    const ShardRange wanted{std::max(shards.begin, mine_.begin), std::min(shards.end, mine_.end)};
    // Also where no row is ours: the count of updates is every rank's.
    return part_->Load(wanted.begin < wanted.end ? wanted : ShardRange{}, in);
  }
  NonFiniteRows FindNonFinite() const override;
  TableStats stats() const override;
  bool IsEmptyHere() const override { return part_->IsEmptyHere(); }
  const TableShape& shape() const override { return part_->shape(); }

 private:
  /// What a pull or a push works with; kept, so that its buffers are.
  struct Scratch {
    std::vector<std::vector<uint64_t>> keys;       ///< by owner
    std::vector<std::vector<uint32_t>> positions;  ///< of these keys among all
    std::vector<std::optional<std::string>> payloads;
    std::vector<std::string> answers;
    RowBatch own;
    std::vector<uint32_t> missing;
    std::vector<float> values;
    RankCalls::Call call;
  };

  int rank() const { return ranks_->rank(); }
  size_t ranks() const { return static_cast<size_t>(ranks_->ranks()); }
  int OwnerOf(uint64_t key) const { return ranks_->OwnerOf(VirtualShardOf(key)); }
  /// Asks all other ranks the same.
  Status AskOthers(RankTables::Request what, std::vector<std::string>* answers) const;
  std::unique_ptr<Scratch> TakeScratch();
  void GiveBack(std::unique_ptr<Scratch> scratch);
  void DealToOwners(std::span<const uint64_t> keys, Scratch* scratch) const;
  Status PullWith(Scratch& scratch, std::span<const uint64_t> keys, PullMode mode, RowBatch* out);
  /// Puts the gradients of an owner's rows into scratch->values.
  void GatherGradients(size_t owner, std::span<const float> gradients, Scratch* scratch) const;
  Status PushOwn(Scratch& scratch, std::span<const float> gradients, const PushContext& context);
  /// Waits until no more than `pushes` are under way.
  Status Flush(size_t pushes);

  std::unique_ptr<SparseTable> part_;
  RankTables* ranks_;
  const RankTableOptions options_;
  ShardRange mine_;
  std::atomic<int64_t> applied_{0};         ///< pushes to part_
  std::vector<std::atomic<int64_t>> seen_;  ///< by owner: pushes that its part had at the last pull
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
  std::deque<std::unique_ptr<Scratch>> under_way_;  ///< pushes
};

std::unique_ptr<RankTable::Scratch> RankTable::TakeScratch() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Scratch> scratch = std::move(free_.back());
      free_.pop_back();
      return scratch;
    }
  }
  auto scratch = std::make_unique<Scratch>();
  scratch->keys.resize(ranks());
  scratch->positions.resize(ranks());
  scratch->payloads.resize(ranks());
  return scratch;
}

void RankTable::GiveBack(std::unique_ptr<Scratch> scratch) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(scratch));
}

void RankTable::DealToOwners(std::span<const uint64_t> keys, Scratch* scratch) const {
  for (size_t r = 0; r < ranks(); ++r) {
    scratch->keys[r].clear();
    scratch->positions[r].clear();
    scratch->payloads[r].reset();
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto owner = static_cast<size_t>(OwnerOf(keys[i]));
    scratch->keys[owner].push_back(keys[i]);
    scratch->positions[owner].push_back(static_cast<uint32_t>(i));
  }
}

Status RankTable::Pull(std::span<const uint64_t> keys, PullMode mode, RowBatch* out) {
  std::unique_ptr<Scratch> scratch = TakeScratch();
  Status pulled = PullWith(*scratch, keys, mode, out);
  GiveBack(std::move(scratch));
  return pulled;
}

Status RankTable::PullWith(Scratch& scratch, std::span<const uint64_t> keys, PullMode mode, RowBatch* out) {
  const auto dim = static_cast<size_t>(shape().dim);
  const auto me = static_cast<size_t>(rank());
  out->Start(this);
  DealToOwners(keys, &scratch);
  for (size_t r = 0; r < ranks(); ++r) {
    if (r == me || scratch.keys[r].empty()) continue;
    WireWriter payload(&scratch.payloads[r].emplace());
    payload.Put(mode);
    payload.Put(options_.wire);
    payload.PutAll(std::span<const uint64_t>(scratch.keys[r]));
  }
  MR_TRY(ranks_->Begin(RankTables::Request::kPull, shape().name, scratch.payloads, &scratch.call));
  seen_[me] = applied_.load(std::memory_order_relaxed);
  // Whatever comes of this, the answers are waited for: they are written to the scratch.
  Status own = part_->Pull(scratch.keys[me], mode, &scratch.own);
  MR_TRY(ranks_->Wait(&scratch.call, &scratch.answers));
  MR_TRY(std::move(own));

  RowPlaces& places = StartRows(keys.size(), out);
  places.keys.assign(keys.begin(), keys.end());
  places.values.resize(keys.size() * dim);
  for (size_t i = 0; i < keys.size(); ++i) places.rows[i] = places.values.data() + i * dim;
  const std::vector<uint32_t>& mine = scratch.positions[me];
  for (size_t i = 0; i < scratch.own.size(); ++i) {
    racy::Best().copy_row(scratch.own.weights()[i], places.rows[mine[i]], dim);
  }
  for (const uint32_t i : scratch.own.missing()) places.missing.push_back(mine[i]);
  for (size_t r = 0; r < ranks(); ++r) {
    if (!scratch.payloads[r].has_value()) continue;
    WireReader answer(scratch.answers[r]);
    seen_[r] = answer.Get<int64_t>();
    answer.GetAll(&scratch.missing);
    answer.GetFloats(options_.wire, &scratch.values);
    if (!answer.ok() || scratch.values.size() != scratch.keys[r].size() * dim) {
      return Internal("table \"" + shape().name + "\": rank " + std::to_string(r) +
                      " sent other rows than were asked for");
    }
    const std::vector<uint32_t>& theirs = scratch.positions[r];
    for (size_t i = 0; i < theirs.size(); ++i) {
      std::copy_n(scratch.values.data() + i * dim, dim, places.rows[theirs[i]]);
    }
    for (const uint32_t i : scratch.missing) places.missing.push_back(theirs[i]);
  }
  std::sort(places.missing.begin(), places.missing.end());
  return Status::Ok();
}

Status RankTable::Push(const RowBatch& rows, std::span<const float> gradients, const PushContext& context) {
  MR_TRY(CheckPush(rows, gradients));
  MR_TRY(Flush(options_.pushes_under_way - 1));
  std::unique_ptr<Scratch> scratch = TakeScratch();
  DealToOwners(PlacesOf(rows).keys, scratch.get());
  int64_t sent = 0;
  for (size_t r = 0; r < ranks(); ++r) {
    if (scratch->keys[r].empty()) continue;
    ++sent;
    if (static_cast<int>(r) == rank()) continue;
    GatherGradients(r, gradients, scratch.get());
    WireWriter payload(&scratch->payloads[r].emplace());
    payload.Put(options_.wire);
    payload.Put(seen_[r].load());
    payload.Put(context.lr);
    payload.PutAll(std::span<const uint64_t>(scratch->keys[r]));
    payload.PutFloats(scratch->values, options_.wire);
  }
  MR_TRY(ranks_->Begin(RankTables::Request::kPush, shape().name, scratch->payloads, &scratch->call));
  ranks_->CountSent(sent);
  Status own = PushOwn(*scratch, gradients, context);
  if (scratch->call.is_over()) {
    GiveBack(std::move(scratch));
    return own;
  }
  const std::lock_guard lock(mutex_);
  under_way_.push_back(std::move(scratch));
  return own;
}

void RankTable::GatherGradients(size_t owner, std::span<const float> gradients, Scratch* scratch) const {
  const auto dim = static_cast<size_t>(shape().dim);
  scratch->values.clear();
  for (const uint32_t i : scratch->positions[owner]) {
    scratch->values.insert(scratch->values.end(), gradients.data() + i * dim, gradients.data() + (i + 1) * dim);
  }
}

Status RankTable::PushOwn(Scratch& scratch, std::span<const float> gradients, const PushContext& context) {
  const auto me = static_cast<size_t>(rank());
  if (scratch.keys[me].empty()) return Status::Ok();
  GatherGradients(me, gradients, &scratch);
  MR_TRY(part_->Pull(scratch.keys[me], PullMode::kInsert, &scratch.own));
  ranks_->CountApplied(applied_, seen_[me]);
  return part_->Push(scratch.own, scratch.values, context);
}

Status RankTable::Flush(size_t pushes) {
  while (true) {
    std::unique_ptr<Scratch> first;
    {
      const std::lock_guard lock(mutex_);
      if (under_way_.size() <= pushes) return Status::Ok();
      first = std::move(under_way_.front());
      under_way_.pop_front();
    }
    MR_TRY(ranks_->Wait(&first->call, &first->answers).Context("a push to table \"" + shape().name + "\""));
    GiveBack(std::move(first));
  }
}

Status RankTable::Save(ShardRange shards, TableContent content, std::ostream& out) const {
  if (shards.begin >= mine_.begin && shards.end <= mine_.end) return part_->Save(shards, content, out);
  // The parts ascend with their ranks, as the rows of a file do with their shards.
  std::vector<std::istringstream> parts;
  for (size_t r = 0; r < ranks(); ++r) {
    const ShardRange theirs = ranks_->ShardsOf(static_cast<int>(r));
    if (!theirs.Meets(shards)) continue;
    const ShardRange wanted{std::max(shards.begin, theirs.begin), std::min(shards.end, theirs.end)};
    if (static_cast<int>(r) == rank()) {
      std::ostringstream bytes;
      MR_TRY(part_->Save(wanted, content, bytes));
      parts.emplace_back(std::move(bytes).str());
      continue;
    }
    std::vector<std::optional<std::string>> payloads(ranks());
    WireWriter payload(&payloads[r].emplace());
    payload.Put(wanted);
    payload.Put(content);
    std::vector<std::string> answers;
    MR_TRY(ranks_->Ask(RankTables::Request::kSave, shape().name, payloads, &answers));
    parts.emplace_back(std::move(answers[r]));
  }
  std::vector<TableReader> readers;
  for (std::istringstream& part : parts) {
    MR_ASSIGN(TableReader reader, TableReader::Open(part));
    readers.push_back(std::move(reader));
  }
  TableHeader header = readers[0].header();
  header.shards = shards;
  header.rows = 0;
  for (const TableReader& reader : readers) header.rows += reader.header().rows;
  MR_ASSIGN(TableWriter writer, TableWriter::Create(out, header));
  for (TableReader& reader : readers) {
    while (true) {
      MR_ASSIGN(const TableBlock* block, reader.Next());
      if (block == nullptr) break;
      for (size_t i = 0; i < block->keys.size(); ++i) {
        MR_TRY(writer.Add(block->keys[i], block->values.data() + i * header.row_floats));
      }
    }
  }
  return writer.Finish();
}

Status RankTable::AskOthers(RankTables::Request what, std::vector<std::string>* answers) const {
  std::vector<std::optional<std::string>> payloads(ranks(), "");
  payloads[static_cast<size_t>(rank())].reset();
  return ranks_->Ask(what, shape().name, payloads, answers);
}

NonFiniteRows RankTable::FindNonFinite() const {
  NonFiniteRows all = part_->FindNonFinite();
  std::vector<std::string> answers;
  // A lost rank ends the run at its next step, with a message.
  if (!AskOthers(RankTables::Request::kFindNonFinite, &answers).ok()) return all;
  for (const std::string& answer : answers) {
    if (answer.empty()) continue;
    const auto theirs = WireReader(answer).Get<NonFiniteRows>();
    if (theirs.rows == 0) continue;
    all.least_key = all.rows == 0 ? theirs.least_key : std::min(all.least_key, theirs.least_key);
    all.rows += theirs.rows;
  }
  return all;
}

TableStats RankTable::stats() const {
  TableStats all = part_->stats();
  std::vector<std::string> answers;
  if (!AskOthers(RankTables::Request::kStats, &answers).ok()) return all;
  for (const std::string& answer : answers) {
    if (answer.empty()) continue;
    const auto theirs = WireReader(answer).Get<TableStats>();
    all.rows += theirs.rows;
    all.bytes += theirs.bytes;
  }
  return all;
}

}  // namespace

TableFactory RankTableFactory(const TableFactory& parts, RankTables& ranks, const RankTableOptions& options) {
  TableFactory factory;
  for (const TableFactory::Entry& entry : parts.entries()) {
    const auto make = [maker = entry.value, &ranks, options](const TableDesc& desc,
                                                             uint64_t seed) -> Result<std::unique_ptr<SparseTable>> {
      MR_ASSIGN(std::unique_ptr<SparseTable> part, maker(desc, seed));
      if (part == nullptr) return part;
      return std::unique_ptr<SparseTable>(std::make_unique<RankTable>(std::move(part), ranks, options));
    };
    CHECK(factory.Add(entry.name, entry.doc, make).ok());
  }
  return factory;
}

}  // namespace millrace
