#include "table/hash_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "core/machine_memory.h"
#include "core/on_threads.h"
#include "kernels/flush_tiny.h"
#include "kernels/non_finite.h"
#include "model.pb.h"
#include "program/model_defaults.h"
#include "table/counted_table.h"
#include "table/ctr_rows.h"
#include "table/key_index.h"
#include "table/row_policy.h"
#include "table/slab_rows.h"
#include "table/table_io.h"
#include "table/virtual_shards.h"

namespace millrace {
namespace {

constexpr uint32_t kShards = 16;
constexpr uint32_t kVirtualAShard = kVirtualShards / kShards;
constexpr size_t kGroup = 32;      // keys whose cells are prefetched together
constexpr size_t kRowsAhead = 16;  // prefetch distance

/// A rule without its regularization, which can change while a table is trained.
std::string WithoutPenalties(const std::string& rule) {
  std::istringstream words(rule);
  std::string kept;
  for (std::string word; words >> word;) {
    if (!word.starts_with("l1=") && !word.starts_with("l2=")) kept += word + " ";
  }
  return kept;
}

class HashTable : public SparseTable, public ReplicaSource, public ChangeTracking {
 public:
  HashTable(const std::string& name, std::shared_ptr<const RowPolicy> policy, bool counts, size_t initial_rows)
      : shape_{name, policy->dim(), policy->row_floats(), counts},
        policy_(std::move(policy)),
        rows_(static_cast<size_t>(shape_.row_floats)) {
    for (auto& shard : shards_) shard = std::make_unique<KeyIndexShard>(initial_rows / kShards);
  }

  Status Pull(std::span<const uint64_t> keys, PullMode mode, RowBatch* out) override {
    RowPlaces& places = StartRows(keys.size(), out);
    reclaimer_.Enter();
    const bool has_memory = FindGroups(keys, mode, &places);
    reclaimer_.Leave();
    if (!has_memory) {
      out->Start(this);
      return NoMemoryForRows();
    }
    if (!places.missing.empty()) ShowInitial(keys, &places);
    return Status::Ok();
  }

  Status Push(const RowBatch& batch, std::span<const float> gradients, const PushContext& context) override {
    MR_TRY(CheckPush(batch, gradients));
    MR_TRY(policy_->Check(gradients));
    const FlushTiny flush;
    const auto dim = static_cast<size_t>(shape_.dim);
    const std::span<float* const> rows(PlacesOf(batch).rows.data(), batch.size());
    MarkChanged(rows);
    const RowStep step{context.lr, pushes_.fetch_add(1, std::memory_order_relaxed) + 1,
                       static_cast<float>(context.examples)};
    if (context.locks == nullptr) {
      policy_->Update(racy::Best(), step, rows.data(), gradients.data(), rows.size());
      return Status::Ok();
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      // Taking a lock waits for all earlier reads.
      if (i + kRowsAhead < rows.size()) FetchRow(rows[i + kRowsAhead]);
      const RowGuard guard(*context.locks, rows[i]);
      policy_->Update(racy::Checked(), step, &rows[i], gradients.data() + i * dim, 1);
    }
    return Status::Ok();
  }

  Status Save(ShardRange shards, TableContent content, std::ostream& out) const override {
    if (content == TableContent::kChanges && changes_since_.load(std::memory_order_relaxed) < 0) {
      return Internal("table \"" + shape_.name + "\" does not know which of its rows changed");
    }
    const std::vector<size_t> counts = CountRows(shards, content);
    TableHeader header = Header(content);
    header.shards = shards;
    header.rows = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
    MR_ASSIGN(TableWriter writer, TableWriter::Create(out, header));
    // One index shard at a time.
    for (uint32_t begin = shards.begin; begin < shards.end;) {
      const uint32_t end = std::min(shards.end, (begin / kVirtualAShard + 1) * kVirtualAShard);
      const std::vector<SavedRow> rows = SortedRows({begin, end}, content, counts.data() + (begin - shards.begin));
      for (size_t i = 0; i < rows.size(); ++i) {
        if (i + kRowsAhead < rows.size()) __builtin_prefetch(rows[i + kRowsAhead].row, 0, 0);
        MR_TRY(writer.Add(rows[i].key, rows[i].row));
      }
      begin = end;
    }
    return writer.Finish();
  }

  Status Load(ShardRange shards, std::istream& in, LoadMode mode) override {
    MR_ASSIGN(TableReader reader, TableReader::Open(in));
    MR_TRY(CheckFits(reader.header()));
    Status status;
    if (shards.size() > 0) {
      reclaimer_.Enter();
      status = LoadBlocks(shards, mode, reader);
      reclaimer_.Leave();
    }
    // Rows loaded with kBehind are older.
    if (mode == LoadMode::kNew) {
      pushes_.store(static_cast<int64_t>(reader.header().pushes), std::memory_order_relaxed);
    }
    return status;
  }

  NonFiniteRows FindNonFinite() const override {
    NonFiniteRows found;
    int64_t values = 0;
    rows_.ForEachSlab([&values](std::span<const float> slab) { values += CountNonFinite(slab); });
    if (values == 0) return found;
    // The index is far larger than the rows of a young table, so search it only if needed: only it knows the keys.
    const auto floats = static_cast<size_t>(shape_.row_floats);
    for (const auto& shard : shards_) {
      shard->cells().ForEach([&](uint64_t key, const float* row) {
        if (CountNonFinite(std::span<const float>(row, floats)) == 0) return;
        found.least_key = found.rows == 0 ? key : std::min(found.least_key, key);
        ++found.rows;
      });
    }
    return found;
  }

  TableStats stats() const override {
    TableStats stats;
    stats.bytes = static_cast<int64_t>(rows_.bytes());
    stats.pushes = pushes_.load(std::memory_order_relaxed);
    stats.changes_since = changes_since_.load(std::memory_order_relaxed);
    for (const auto& shard : shards_) {
      const KeyIndexShard::Stats shard_stats = shard->stats();
      stats.rows += static_cast<int64_t>(shard_stats.keys);
      stats.bytes += static_cast<int64_t>(shard_stats.bytes);
    }
    return stats;
  }

  const TableShape& shape() const override { return shape_; }

  const RowPolicy& row_policy() const override { return *policy_; }

  void AddToRows(const RowBatch& batch, const Learnt& learnt, std::vector<float>* now) override {
    const auto floats = static_cast<size_t>(shape_.row_floats);
    now->resize(batch.size() * floats);
    const FlushTiny flush;
    if (!learnt.moved.empty()) {
      pushes_.fetch_add(1, std::memory_order_relaxed);
      MarkChanged({PlacesOf(batch).rows.data(), batch.size()});
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      float* const row = PlacesOf(batch).rows[i];
      if (!learnt.moved.empty()) {
        const float* const moved = learnt.moved.data() + i * floats;
        policy_->AddAfterOthers(moved, learnt.known.empty() ? 0 : learnt.known[i], learnt.lr, row);
      }
      racy::CopyRow(row, now->data() + i * floats, floats);
    }
  }

  Status BeginChanges() override {
    BeginChangesHere();
    return Status::Ok();
  }

  void BeginChangesHere() override {
    rows_.ClearMarks();
    marked_rows_.store(0, std::memory_order_relaxed);
    rows_at_begin_.store(stats().rows, std::memory_order_relaxed);
    changes_since_.store(pushes_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

  Result<ChangedRows> CountChanges() const override {
    const int64_t since = changes_since_.load(std::memory_order_relaxed);
    if (since < 0) return ChangedRows{};
    return ChangedRows{since, std::min(static_cast<int64_t>(rows_.CountMarked()), stats().rows)};
  }

  int64_t EstimateLocalChanges() const override {
    const int64_t rows = stats().rows;
    if (changes_since_.load(std::memory_order_relaxed) < 0) return rows;
    // New rows are marked on creation.
    const int64_t made = rows - rows_at_begin_.load(std::memory_order_relaxed);
    return std::min(rows, made + marked_rows_.load(std::memory_order_relaxed));
  }

 protected:
  /// Calls removes(row) for each row, which it can change, and deletes the rows for which it returns true.
  template <class Removes>
  Result<ShrinkReport> RemoveIf(int threads, const Removes& removes) {
    changes_since_.store(-1, std::memory_order_relaxed);
    std::atomic<int64_t> deleted{0};
    reclaimer_.Enter();
    const Status status = OnThreads(threads, kShards, "shrinking a table", [&](size_t i) {
      const std::vector<float*> removed = shards_[i]->RemoveIf(reclaimer_, removes);
      rows_.Free(removed);
      deleted += static_cast<int64_t>(removed.size());
      return Status::Ok();
    });
    reclaimer_.Leave();
    MR_TRY(status);
    return ShrinkReport{stats().rows, deleted};
  }

  /// Calls changes(row) for each row, which returns whether it changed the row.
  template <class Changes>
  void ChangeRows(const Changes& changes) {
    for (const auto& shard : shards_) {
      shard->cells().ForEach([this, &changes](uint64_t, float* row) {
        if (changes(row)) rows_.Mark(row);
      });
    }
  }

  /// Calls visit(row) for each row.
  template <class Visit>
  void ForEachRow(const Visit& visit) const {
    for (const auto& shard : shards_) {
      shard->cells().ForEach([&visit](uint64_t, const float* row) { visit(row); });
    }
  }

 private:
  /// False without memory for another row.
  bool FindGroups(std::span<const uint64_t> keys, PullMode mode, RowPlaces* out) {
    try {
      for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
        FindGroup(keys.subspan(begin, std::min(kGroup, keys.size() - begin)), mode, begin, out);
      }
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  Status NoMemoryForRows() const {
    const TableStats now = stats();
    return Unavailable("table \"" + shape_.name + "\": no memory for more than its " + std::to_string(now.rows) +
                       " rows (" + std::to_string(shape_.row_floats) + " floats each, " +
                       Gibibytes(static_cast<double>(now.bytes)) +
                       " in all): a smaller dim, an optimizer with less state, fewer distinct ids, or a larger limit "
                       "(ulimit -v) may help");
  }

  /// No-op for a table without a checkpoint.
  void MarkChanged(std::span<float* const> rows) const {
    if (changes_since_.load(std::memory_order_relaxed) < 0) return;
    int64_t marked = 0;
    for (const float* row : rows) marked += rows_.Mark(row) ? 1 : 0;
    if (marked > 0) marked_rows_.fetch_add(marked, std::memory_order_relaxed);
  }

  void FetchRow(const float* row) const {
    for (int i = 0; i < shape_.row_floats; i += 16) __builtin_prefetch(row + i, 1, 3);
  }

  KeyIndexShard& ShardOf(uint64_t hash) { return *shards_[ShardOfHash(hash) / kVirtualAShard]; }

  struct SavedRow {
    uint64_t key;
    const float* row;
    bool operator<(const SavedRow& other) const { return key < other.key; }
  };

  /// Most saves contain all rows without testing them.
  bool IsIn(TableContent content, const float* row) const {
    if (content == TableContent::kChanges) return rows_.IsMarked(row);
    return !shape_.counts || content == TableContent::kAll || content == TableContent::kWeights ||
           policy_->IsIn(content, row);
  }

  /// The number of rows of `content` in each virtual shard of a range.
  std::vector<size_t> CountRows(ShardRange range, TableContent content) const {
    std::vector<size_t> counts(range.size());
    for (uint32_t i = range.begin / kVirtualAShard; i * kVirtualAShard < range.end; ++i) {
      shards_[i]->cells().ForEach([&](uint64_t key, const float* row) {
        if (const uint32_t shard = VirtualShardOf(key); range.Has(shard) && IsIn(content, row)) {
          ++counts[shard - range.begin];
        }
      });
    }
    return counts;
  }

  /// Rows of virtual shards in one index shard, by virtual shard, then key; `counts` has their numbers.
  std::vector<SavedRow> SortedRows(ShardRange range, TableContent content, const size_t* counts) const {
    std::vector<size_t> ends(range.size());  // per virtual shard
    std::exclusive_scan(counts, counts + range.size(), ends.begin(), size_t{0});
    std::vector<SavedRow> rows(ends.back() + counts[range.size() - 1]);
    shards_[range.begin / kVirtualAShard]->cells().ForEach([&](uint64_t key, const float* row) {
      if (const uint32_t shard = VirtualShardOf(key); range.Has(shard) && IsIn(content, row)) {
        rows[ends[shard - range.begin]++] = {key, row};
      }
    });
    for (size_t i = 0; i < ends.size(); ++i) {
      const auto end = rows.begin() + static_cast<std::ptrdiff_t>(ends[i]);
      std::sort(end - static_cast<std::ptrdiff_t>(counts[i]), end);
    }
    return rows;
  }

  Status LoadBlocks(ShardRange shards, LoadMode mode, TableReader& reader) {
    const size_t floats = reader.header().row_floats;
    try {
      MakeRoom(shards, mode, reader);
      LoadedGroup group;
      while (true) {
        MR_ASSIGN(const TableBlock* const block, reader.Next());
        for (size_t i = 0; block != nullptr && i < block->keys.size(); ++i) {
          const uint64_t hash = HashKey(block->keys[i]);
          if (!shards.Has(ShardOfHash(hash))) continue;
          if (mode == LoadMode::kBehind && ShardOf(hash).cells().Find(block->keys[i], hash) != nullptr) continue;
          group.Add(block->keys[i], hash, block->values.data() + i * floats);
          if (group.size == kGroup) MR_TRY(AddGroup(floats, &group));
        }
        MR_TRY(AddGroup(floats, &group));  // the block is reused
        if (block == nullptr) return Status::Ok();
      }
    } catch (const std::bad_alloc&) {
      return NoMemoryForRows();
    }
  }

  /// Reserves room for the file's rows of `shards`, which hashing distributes evenly. With kBehind, most rows exist
  /// already.
  void MakeRoom(ShardRange shards, LoadMode mode, const TableReader& reader) {
    const ShardRange& all = reader.header().shards;
    const uint64_t rows = reader.RowsToExpect();
    for (uint32_t i = 0; i < kShards; ++i) {
      const uint32_t begin = std::max({i * kVirtualAShard, shards.begin, all.begin});
      const uint32_t end = std::min({(i + 1) * kVirtualAShard, shards.end, all.end});
      if (begin >= end) continue;
      const size_t wanted = rows * (end - begin) / all.size() * 65 / 64;
      const size_t there = mode == LoadMode::kBehind ? shards_[i]->stats().keys : 0;
      if (wanted > there) shards_[i]->Reserve(wanted - there, reclaimer_);
    }
  }

  /// Rows of a file whose cells are prefetched together.
  struct LoadedGroup {
    size_t size = 0;
    std::array<uint64_t, kGroup> keys;
    std::array<uint64_t, kGroup> hashes;
    std::array<const float*, kGroup> values;

    void Add(uint64_t key, uint64_t hash, const float* row) {
      keys[size] = key;
      hashes[size] = hash;
      values[size] = row;
      ++size;
    }
  };

  /// Creates rows of `floats` floats from a group, and clears it.
  Status AddGroup(size_t floats, LoadedGroup* group) {
    const size_t size = std::exchange(group->size, 0);
    for (size_t i = 0; i < size; ++i) ShardOf(group->hashes[i]).cells().Prefetch(group->hashes[i]);
    std::array<float*, kGroup> rows;
    rows_.Allocate({rows.data(), size});
    for (size_t i = 0; i < size; ++i) {
      std::copy_n(group->values[i], floats, rows[i]);
      if (floats == static_cast<size_t>(shape_.dim)) policy_->StartState(group->keys[i], rows[i]);
    }
    for (size_t begin = 0; begin < size;) {
      KeyIndexShard& shard = ShardOf(group->hashes[begin]);
      size_t end = begin + 1;
      while (end < size && &ShardOf(group->hashes[end]) == &shard) ++end;
      const std::span<const uint64_t> keys(group->keys.data() + begin, end - begin);
      if (!shard.AddNew(keys, group->hashes.data() + begin, rows.data() + begin, reclaimer_)) {
        return AlreadyExists("table \"" + shape_.name +
                             "\" has rows already that are to be loaded: load into a new one");
      }
      begin = end;
    }
    return Status::Ok();
  }

  void FindGroup(std::span<const uint64_t> keys, PullMode mode, size_t begin, RowPlaces* out) {
    std::array<uint64_t, kGroup> hashes;
    for (size_t i = 0; i < keys.size(); ++i) {
      hashes[i] = HashKey(keys[i]);
      ShardOf(hashes[i]).cells().Prefetch(hashes[i]);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      float* row = ShardOf(hashes[i]).cells().Find(keys[i], hashes[i]);
      if (row != nullptr) {
        __builtin_prefetch(row, 1, 3);
      } else if (mode == PullMode::kInsert) {
        row = Insert(keys[i]);
      } else {
        out->missing.push_back(static_cast<uint32_t>(begin + i));
      }
      out->rows[begin + i] = row;
    }
  }

  float* Insert(uint64_t key) {
    const uint64_t hash = HashKey(key);
    return ShardOf(hash).FindOrAdd(key, hash, reclaimer_, [this, key] {
      float* row = rows_.Allocate();
      policy_->Start(key, row);
      rows_.Mark(row);
      return row;
    });
  }

  void ShowInitial(std::span<const uint64_t> keys, RowPlaces* out) const {
    const auto dim = static_cast<size_t>(shape_.dim);
    out->values.resize(out->missing.size() * dim);
    for (size_t i = 0; i < out->missing.size(); ++i) {
      float* row = out->values.data() + i * dim;
      policy_->ShowUnknown(keys[out->missing[i]], row);
      out->rows[out->missing[i]] = row;
    }
  }

  TableHeader Header(TableContent content) const {
    TableHeader header;
    header.name = shape_.name;
    header.dim = static_cast<uint32_t>(shape_.dim);
    header.row_floats = header.dim;
    if (content == TableContent::kChanges) header.since = static_cast<uint64_t>(changes_since_.load());
    if (content != TableContent::kAll && content != TableContent::kChanges) return header;
    header.optimizer = policy_->Describe();
    header.row_floats = static_cast<uint32_t>(shape_.row_floats);
    header.pushes = static_cast<uint64_t>(pushes_.load(std::memory_order_relaxed));
    return header;
  }

  Status CheckFits(const TableHeader& saved) const {
    const TableHeader mine = Header(TableContent::kAll);
    const bool weights_alone = saved.optimizer.empty() && saved.row_floats == saved.dim;
    if (weights_alone && saved.dim == mine.dim) return Status::Ok();
    if (saved.dim == mine.dim && saved.row_floats == mine.row_floats &&
        WithoutPenalties(saved.optimizer) == WithoutPenalties(mine.optimizer)) {
      return Status::Ok();
    }
    return InvalidConfig("table \"" + shape_.name + "\": the saved table \"" + saved.name + "\" has dim " +
                         std::to_string(saved.dim) + " and optimizer \"" + saved.optimizer +
                         "\", the configured one has dim " + std::to_string(mine.dim) + " and optimizer \"" +
                         mine.optimizer + "\"");
  }

  const TableShape shape_;
  const std::shared_ptr<const RowPolicy> policy_;
  SlabRows rows_;
  std::array<std::unique_ptr<KeyIndexShard>, kShards> shards_;
  Reclaimer reclaimer_;
  std::atomic<int64_t> pushes_{0};
  mutable std::atomic<int64_t> marked_rows_{0};  // by pushes since BeginChanges
  std::atomic<int64_t> rows_at_begin_{0};        // at BeginChanges
  std::atomic<int64_t> changes_since_{-1};       // pushes at the last BeginChanges; -1: never
};

class CountedHashTable final : public HashTable, public CountedTable {
 public:
  CountedHashTable(const std::string& name, const std::shared_ptr<const CtrRows>& rows, size_t initial_rows)
      : HashTable(name, rows, true, initial_rows), rows_(*rows) {}

  Result<ShrinkReport> Shrink(int threads) override {
    return RemoveIf(threads, [this](float* row) { return rows_.Ages(row); });
  }

  Status WasSaved(TableContent content) override {
    ChangeRows([&](float* row) {
      const bool was_saved = rows_.IsIn(content, row);
      if (was_saved) rows_.WasSaved(row);
      return was_saved;
    });
    return Status::Ok();
  }

  Result<CountedRows> Count() const override {
    CountedRows sums;
    ForEachRow([&](const float* row) {
      ++sums.rows;
      sums.with_embedx += rows_.HasEmbedx(row) ? 1 : 0;
      sums.shows += static_cast<double>(row[CtrRows::kShow]);
      sums.clicks += static_cast<double>(row[CtrRows::kClick]);
    });
    return sums;
  }

  const CtrRows& policy() const override { return rows_; }

 private:
  const CtrRows& rows_;  // the table's policy
};

Status CheckLength(const std::string& table, const RowPolicy& policy) {
  if (static_cast<size_t>(policy.row_floats()) <= SlabRows::kMostFloats) return Status::Ok();
  return InvalidConfig("table \"" + table + "\": a row has " + std::to_string(policy.row_floats()) +
                       " floats with its optimizer's state, and at most " + std::to_string(SlabRows::kMostFloats) +
                       " are possible; use a smaller dim or another optimizer");
}

}  // namespace

Result<std::unique_ptr<SparseTable>> CreateHashTable(const TableDesc& desc, uint64_t seed) {
  const int dim = DimOf(desc);
  if (dim < 1 || dim > (1 << 16)) {
    return InvalidConfig("table \"" + desc.name() + "\": dim must be between 1 and 65536: " + std::to_string(dim));
  }
  if (desc.initial_rows() < 0 || desc.initial_rows() > (int64_t{1} << 36)) {
    return InvalidConfig("table \"" + desc.name() +
                         "\": initial_rows must be between 0 and 2^36: " + std::to_string(desc.initial_rows()));
  }
  const double index = static_cast<double>(kShards) *
                       static_cast<double>(KeyIndexShard::BytesFor(static_cast<size_t>(desc.initial_rows()) / kShards));
  if (index > PhysicalMemory()) {
    return InvalidConfig("table \"" + desc.name() + "\": initial_rows: " + std::to_string(desc.initial_rows()) +
                         " need an index of " + Gibibytes(index) + ", and this machine has " +
                         Gibibytes(PhysicalMemory()) + "; a smaller table grows as ids come");
  }
  const auto initial_rows = static_cast<size_t>(desc.initial_rows());
  if (!desc.has_accessor()) {
    MR_ASSIGN(std::unique_ptr<RowPolicy> policy, MakeOptimizedRows(desc, seed));
    MR_TRY(CheckLength(desc.name(), *policy));
    return std::unique_ptr<SparseTable>(
        std::make_unique<HashTable>(desc.name(), std::move(policy), false, initial_rows));
  }
  MR_ASSIGN(std::unique_ptr<CtrRows> rows,
            CtrRows::Create(desc, seed).Context("table \"" + desc.name() + "\": accessor"));
  MR_TRY(CheckLength(desc.name(), *rows));
  return std::unique_ptr<SparseTable>(
      std::make_unique<CountedHashTable>(desc.name(), std::shared_ptr<const CtrRows>(std::move(rows)), initial_rows));
}

}  // namespace millrace
