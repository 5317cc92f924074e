// A table of which each rank has a part (dist/rank_tables.h).

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "dist/rank_tables.h"
#include "dist/wire.h"
#include "model.pb.h"
#include "table/table_io.h"

namespace millrace {
namespace {

class RankTable final : public SparseTable {
 public:
  RankTable(std::unique_ptr<SparseTable> part, RankTables& ranks)
      : part_(std::move(part)), ranks_(&ranks), mine_(ranks.ShardsOf(ranks.rank())) {
    ranks_->Add(shape().name, part_.get());
  }
  ~RankTable() override { ranks_->Remove(shape().name); }

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
  int rank() const { return ranks_->rank(); }
  size_t ranks() const { return static_cast<size_t>(ranks_->ranks()); }
  int OwnerOf(uint64_t key) const { return ranks_->OwnerOf(VirtualShardOf(key)); }
  /// Asks all other ranks the same.
  Status AskOthers(RankTables::Request what, std::vector<std::string>* answers) const;

  std::unique_ptr<SparseTable> part_;
  RankTables* ranks_;
  ShardRange mine_;
};

Status RankTable::Pull(std::span<const uint64_t> keys, PullMode mode, RowBatch* out) {
  const auto dim = static_cast<size_t>(shape().dim);
  out->Start(this);
  std::vector<std::vector<uint64_t>> keys_of(ranks());
  std::vector<std::vector<uint32_t>> positions_of(ranks());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto owner = static_cast<size_t>(OwnerOf(keys[i]));
    keys_of[owner].push_back(keys[i]);
    positions_of[owner].push_back(static_cast<uint32_t>(i));
  }
  std::vector<std::optional<std::string>> payloads(ranks());
  for (size_t r = 0; r < ranks(); ++r) {
    if (static_cast<int>(r) == rank() || keys_of[r].empty()) continue;
    WireWriter payload(&payloads[r].emplace());
    payload.Put(mode);
    payload.PutAll(std::span<const uint64_t>(keys_of[r]));
  }
  std::vector<std::string> answers;
  MR_TRY(ranks_->Ask(RankTables::Request::kPull, shape().name, payloads, &answers));

  RowPlaces& places = StartRows(keys.size(), out);
  places.keys.assign(keys.begin(), keys.end());
  places.values.resize(keys.size() * dim);
  for (size_t i = 0; i < keys.size(); ++i) places.rows[i] = places.values.data() + i * dim;
  const auto me = static_cast<size_t>(rank());
  RowBatch own;
  MR_TRY(part_->Pull(keys_of[me], mode, &own));
  for (size_t i = 0; i < own.size(); ++i) std::copy_n(own.weights()[i], dim, places.rows[positions_of[me][i]]);
  for (const uint32_t i : own.missing()) places.missing.push_back(positions_of[me][i]);
  std::vector<uint32_t> missing;
  std::vector<float> values;
  for (size_t r = 0; r < ranks(); ++r) {
    if (!payloads[r].has_value()) continue;
    WireReader answer(answers[r]);
    answer.GetAll(&missing);
    answer.GetAll(&values);
    if (!answer.ok() || values.size() != keys_of[r].size() * dim) {
      return Internal("table \"" + shape().name + "\": rank " + std::to_string(r) +
                      " sent other rows than were asked for");
    }
    for (size_t i = 0; i < keys_of[r].size(); ++i) {
      std::copy_n(values.data() + i * dim, dim, places.rows[positions_of[r][i]]);
    }
    for (const uint32_t i : missing) places.missing.push_back(positions_of[r][i]);
  }
  std::sort(places.missing.begin(), places.missing.end());
  return Status::Ok();
}

Status RankTable::Push(const RowBatch& rows, std::span<const float> gradients, const PushContext& context) {
  MR_TRY(CheckPush(rows, gradients));
  const std::span<const uint64_t> keys = PlacesOf(rows).keys;
  for (const uint64_t key : keys) {
    if (OwnerOf(key) == rank()) continue;
    return Internal("table \"" + shape().name + "\": a gradient of rank " + std::to_string(OwnerOf(key)) +
                    "'s rows is pushed here");
  }
  RowBatch own;
  MR_TRY(part_->Pull(keys, PullMode::kInsert, &own));
  return part_->Push(own, gradients, context);
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

TableFactory RankTableFactory(const TableFactory& parts, RankTables& ranks) {
  TableFactory factory;
  for (const TableFactory::Entry& entry : parts.entries()) {
    const auto make = [maker = entry.value, &ranks](const TableDesc& desc,
                                                    uint64_t seed) -> Result<std::unique_ptr<SparseTable>> {
      MR_ASSIGN(std::unique_ptr<SparseTable> part, maker(desc, seed));
      if (part == nullptr) return part;
      return std::unique_ptr<SparseTable>(std::make_unique<RankTable>(std::move(part), ranks));
    };
    CHECK(factory.Add(entry.name, entry.doc, make).ok());
  }
  return factory;
}

}  // namespace millrace
