#include "far_table.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "table/hash_table.h"

namespace millrace {
namespace {

class FarTable final : public SparseTable {
 public:
  FarTable(std::unique_ptr<SparseTable> there, FarTableCalls* calls) : there_(std::move(there)), calls_(calls) {}

  Status Pull(std::span<const uint64_t> keys, PullMode mode, RowBatch* out) override {
    RowBatch rows;
    out->Start(this);
    MR_TRY(there_->Pull(keys, mode, &rows));
    ++calls_->pulls;
    const auto dim = static_cast<size_t>(shape().dim);
    RowPlaces& places = StartRows(keys.size(), out);
    places.keys.assign(keys.begin(), keys.end());
    places.missing.assign(rows.missing().begin(), rows.missing().end());
    places.values.resize(keys.size() * dim);
    for (size_t i = 0; i < keys.size(); ++i) {
      places.rows[i] = places.values.data() + i * dim;
      std::copy_n(rows.weights()[i], dim, places.rows[i]);
    }
    return Status::Ok();
  }
  Status Push(const RowBatch& rows, std::span<const float> gradients, const PushContext& context) override {
    MR_TRY(CheckPush(rows, gradients));
    RowBatch theirs;
    MR_TRY(there_->Pull(PlacesOf(rows).keys, PullMode::kInsert, &theirs));
    ++calls_->pushes;
    return there_->Push(theirs, gradients, context);
  }
  Status Save(ShardRange shards, TableContent content, std::ostream& out) const override {
    return there_->Save(shards, content, out);
  }
  Status Load(ShardRange shards, std::istream& in, LoadMode mode) override { return there_->Load(shards, in, mode); }
  NonFiniteRows FindNonFinite() const override { return there_->FindNonFinite(); }
  TableStats stats() const override { return there_->stats(); }
  const TableShape& shape() const override { return there_->shape(); }

 private:
  std::unique_ptr<SparseTable> there_;
  FarTableCalls* calls_;
};

}  // namespace

TableMaker FarTableMaker(FarTableCalls* calls) {
  return [calls](const TableDesc& desc, uint64_t seed) -> Result<std::unique_ptr<SparseTable>> {
    MR_ASSIGN(std::unique_ptr<SparseTable> there, CreateHashTable(desc, seed));
    return std::unique_ptr<SparseTable>(std::make_unique<FarTable>(std::move(there), calls));
  };
}

}  // namespace millrace
