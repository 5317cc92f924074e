#include "batch/slot_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "batch/batch_pool.h"
#include "core/rng.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SlotSchema Schema() {
  DataFeedDesc desc;
  for (const char* name : {"ids", "floats", "dense"}) {
    Slot* slot = desc.mutable_multi_slot_desc()->add_slots();
    slot->set_name(name);
    slot->set_type(name == std::string("ids") ? "uint64" : "float");
    slot->set_is_used(true);
  }
  Slot* dense = desc.mutable_multi_slot_desc()->mutable_slots(2);
  dense->set_is_dense(true);
  dense->add_shape(-1);
  dense->add_shape(2);
  return SlotSchema::Create(desc).value();
}

void Fill(SlotBatch* batch, int rows, Rng& rng) {
  for (int row = 0; row < rows; ++row) {
    for (uint64_t i = rng.Below(4); i > 0; --i) batch->column(0).ids.push_back(rng.Next());
    batch->column(0).offsets.push_back(static_cast<uint32_t>(batch->column(0).ids.size()));
    batch->column(1).offsets.push_back(0);
    batch->column(2).floats.push_back(1);
    batch->column(2).floats.push_back(2);
    batch->mutable_origins().push_back({0, static_cast<uint64_t>(row)});
  }
  batch->mutable_spans().push_back({0, 0, static_cast<uint64_t>(rows)});
  batch->set_rows(rows);
}

// What a feed may count on when it begins, whatever the batch held before.
void ExpectEmpty(const SlotBatch& batch) {
  EXPECT_EQ(batch.rows(), 0);
  EXPECT_THAT(batch.ids(0), IsEmpty());
  EXPECT_THAT(batch.offsets(0), ElementsAre(0));
  EXPECT_THAT(batch.floats(1), IsEmpty());
  EXPECT_THAT(batch.offsets(1), ElementsAre(0));
  EXPECT_THAT(batch.floats(2), IsEmpty());
  EXPECT_THAT(batch.offsets(2), IsEmpty());
  EXPECT_THAT(batch.origins(), IsEmpty());
  EXPECT_THAT(batch.spans(), IsEmpty());
  EXPECT_THAT(batch.ins_ids(), IsEmpty());
  EXPECT_THAT(batch.contents(), IsEmpty());
}

TEST(SlotBatchTest, ClearEmptiesAndKeepsTheBuffers) {
  const SlotSchema schema = Schema();
  SlotBatch batch(schema);
  Rng rng(1);
  ExpectEmpty(batch);
  Fill(&batch, 1000, rng);
  const uint64_t* const ids = batch.ids(0).data();
  const uint32_t* const offsets = batch.offsets(0).data();
  batch.Clear();
  ExpectEmpty(batch);
  Fill(&batch, 10, rng);
  EXPECT_EQ(batch.ids(0).data(), ids);
  EXPECT_EQ(batch.offsets(0).data(), offsets);
  EXPECT_EQ(batch.rows(), 10);
}

TEST(SlotBatchTest, NamesOfRowsAreAsManyAsRows) {
  const SlotSchema schema = Schema();
  SlotBatch batch(schema);
  batch.mutable_ins_ids() = {"a", "b", "c"};
  batch.mutable_contents() = {"x", "y", "z"};
  batch.set_rows(2);
  EXPECT_THAT(batch.ins_ids(), ElementsAre("a", "b"));
  EXPECT_THAT(batch.contents(), ElementsAre("x", "y"));
}

TEST(BatchPoolTest, GivesBackWhatItGotEmptied) {
  const SlotSchema schema = Schema();
  BatchPool pool(schema);
  Rng rng(2);
  const SlotBatch* first = nullptr;
  {
    const BatchPtr batch = pool.Take();
    first = batch.get();
    Fill(batch.get(), 5, rng);
  }
  const BatchPtr again = pool.Take();
  EXPECT_EQ(again.get(), first);
  ExpectEmpty(*again);
  EXPECT_EQ(pool.made(), 1);
}

TEST(BatchPoolTest, MakesAsManyAsAreInUseAtOnce) {
  const SlotSchema schema = Schema();
  BatchPool pool(schema);
  Rng rng(3);
  std::vector<BatchPtr> in_use;
  size_t most = 0;
  for (int step = 0; step < 1000; ++step) {
    if (in_use.empty() || (in_use.size() < 12 && rng.Below(2) == 0)) {
      in_use.push_back(pool.Take());
    } else {
      const size_t at = rng.Below(in_use.size());
      in_use[at] = std::move(in_use.back());
      in_use.pop_back();
    }
    most = std::max(most, in_use.size());
    ASSERT_EQ(pool.made(), static_cast<int>(most));
  }
  // None is out twice.
  std::vector<const SlotBatch*> batches;
  for (const BatchPtr& batch : in_use) batches.push_back(batch.get());
  std::sort(batches.begin(), batches.end());
  EXPECT_EQ(std::adjacent_find(batches.begin(), batches.end()), batches.end());
}

TEST(BatchPoolTest, ManyThreadsNeverShareABatch) {
  const SlotSchema schema = Schema();
  BatchPool pool(schema);
  constexpr int kThreads = 4;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&pool, t] {
        Rng rng(static_cast<uint64_t>(t));
        for (int i = 0; i < 2000; ++i) {
          const BatchPtr batch = pool.Take();
          ASSERT_EQ(batch->rows(), 0);
          Fill(batch.get(), t + 1, rng);
          ASSERT_EQ(batch->rows(), t + 1);
          ASSERT_EQ(batch->origins().size(), static_cast<size_t>(t + 1));
        }
      });
    }
  }
  EXPECT_GE(pool.made(), 1);
  EXPECT_LT(pool.made(), kThreads * 2000) << "batches are used again";
}

}  // namespace
}  // namespace millrace
