#include "table/hash_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <sstream>
#include <vector>

#include "core/machine_memory.h"
#include "kernels/non_finite.h"
#include "model.pb.h"
#include "table/key_index.h"
#include "table/row_initializer.h"
#include "table/row_optimizer.h"
#include "table/slab_rows.h"
#include "table/table_io.h"

namespace millrace {
namespace {

constexpr size_t kShards = 16;
constexpr size_t kGroup = 32;  // keys whose cells are fetched together

/// A rule with the constants that its state was made with: penalties may change while a table is trained.
std::string WithoutPenalties(const std::string& rule) {
  std::istringstream words(rule);
  std::string kept;
  for (std::string word; words >> word;) {
    if (!word.starts_with("l1=") && !word.starts_with("l2=")) kept += word + " ";
  }
  return kept;
}

class HashTable final : public SparseTable {
 public:
  HashTable(TableShape shape, const RowInitializer& initializer, std::unique_ptr<RowOptimizer> optimizer,
            size_t initial_rows)
      : shape_(std::move(shape)),
        initializer_(initializer),
        optimizer_(std::move(optimizer)),
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
    const auto dim = static_cast<size_t>(shape_.dim);
    const std::span<float* const> rows(PlacesOf(batch).rows.data(), batch.size());
    const RowStep step{context.lr, pushes_.fetch_add(1, std::memory_order_relaxed) + 1};
    if (context.locks == nullptr) {
      optimizer_->Update(racy::Best(), step, rows.data(), gradients.data(), rows.size());
      return Status::Ok();
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const RowGuard guard(*context.locks, rows[i]);
      optimizer_->Update(racy::Checked(), step, &rows[i], gradients.data() + i * dim, 1);
    }
    return Status::Ok();
  }

  Status Save(std::ostream& out, TableContent content) const override {
    std::vector<std::pair<uint64_t, const float*>> sorted;
    for (const auto& shard : shards_) {
      shard->cells().ForEach([&sorted](uint64_t key, const float* row) { sorted.emplace_back(key, row); });
    }
    std::sort(sorted.begin(), sorted.end());
    TableHeader header = Header(content);
    header.rows = sorted.size();
    MR_TRY(WriteTableHeader(out, header));
    TableBlock block;
    for (size_t begin = 0; begin < sorted.size(); begin += kTableBlockRows) {
      const size_t end = std::min(sorted.size(), begin + kTableBlockRows);
      block.keys.clear();
      block.values.clear();
      for (size_t i = begin; i < end; ++i) {
        block.keys.push_back(sorted[i].first);
        block.values.insert(block.values.end(), sorted[i].second, sorted[i].second + header.row_floats);
      }
      MR_TRY(WriteTableBlock(out, block));
    }
    return Status::Ok();
  }

  Status Load(std::istream& in) override {
    if (stats().rows != 0) return AlreadyExists("table \"" + shape_.name + "\" is not empty: load into a new one");
    MR_ASSIGN(const TableHeader header, ReadTableHeader(in));
    MR_TRY(CheckFits(header));
    reclaimer_.Enter();
    Status status = LoadBlocks(in, header);
    reclaimer_.Leave();
    pushes_.store(static_cast<int64_t>(header.pushes), std::memory_order_relaxed);
    return status;
  }

  NonFiniteRows FindNonFinite() const override {
    NonFiniteRows found;
    int64_t values = 0;
    rows_.ForEachSlab([&values](std::span<const float> slab) { values += CountNonFinite(slab); });
    if (values == 0) return found;
    // The cells are far more memory than the rows of a young table: only they know the keys.
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
    for (const auto& shard : shards_) {
      const KeyIndexShard::Stats shard_stats = shard->stats();
      stats.rows += static_cast<int64_t>(shard_stats.keys);
      stats.bytes += static_cast<int64_t>(shard_stats.bytes);
    }
    return stats;
  }

  const TableShape& shape() const override { return shape_; }

 private:
  /// False when there is no memory for another row.
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

  KeyIndexShard& ShardOf(uint64_t hash) { return *shards_[hash >> 60]; }

  Status LoadBlocks(std::istream& in, const TableHeader& header) {
    TableBlock block;
    try {
      for (uint64_t b = 0; b < TableBlocks(header); ++b) {
        MR_TRY(ReadTableBlock(in, header, b, &block));
        for (size_t i = 0; i < block.keys.size(); ++i) {
          std::copy_n(block.values.data() + i * header.row_floats, header.row_floats, Insert(block.keys[i]));
        }
      }
    } catch (const std::bad_alloc&) {
      return NoMemoryForRows();
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
      initializer_.Fill(key, row, shape_.dim);
      optimizer_->InitState(row + shape_.dim);
      return row;
    });
  }

  void ShowInitial(std::span<const uint64_t> keys, RowPlaces* out) const {
    const auto dim = static_cast<size_t>(shape_.dim);
    out->values.resize(out->missing.size() * dim);
    for (size_t i = 0; i < out->missing.size(); ++i) {
      float* row = out->values.data() + i * dim;
      initializer_.Fill(keys[out->missing[i]], row, shape_.dim);
      out->rows[out->missing[i]] = row;
    }
  }

  TableHeader Header(TableContent content) const {
    TableHeader header;
    header.name = shape_.name;
    header.dim = static_cast<uint32_t>(shape_.dim);
    header.row_floats = header.dim;
    if (content == TableContent::kWeights) return header;
    header.optimizer = optimizer_->Describe();
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
  const RowInitializer initializer_;
  const std::unique_ptr<RowOptimizer> optimizer_;
  SlabRows rows_;
  std::array<std::unique_ptr<KeyIndexShard>, kShards> shards_;
  Reclaimer reclaimer_;
  std::atomic<int64_t> pushes_{0};
};

}  // namespace

Result<std::unique_ptr<SparseTable>> CreateHashTable(const TableDesc& desc, uint64_t seed) {
  if (desc.dim() < 1 || desc.dim() > (1 << 16)) {
    return InvalidConfig("table \"" + desc.name() +
                         "\": dim must be between 1 and 65536: " + std::to_string(desc.dim()));
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
  MR_ASSIGN(const RowInitializer initializer, RowInitializer::Create(desc.init(), desc.name(), seed));
  MR_ASSIGN(std::unique_ptr<RowOptimizer> optimizer,
            MakeRowOptimizer(desc.optimizer(), desc.dim()).Context("table \"" + desc.name() + "\""));
  TableShape shape{desc.name(), desc.dim(), desc.dim() + optimizer->state_floats()};
  return std::unique_ptr<SparseTable>(std::make_unique<HashTable>(std::move(shape), initializer, std::move(optimizer),
                                                                  static_cast<size_t>(desc.initial_rows())));
}

}  // namespace millrace
