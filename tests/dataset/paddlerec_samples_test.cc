// Files of PaddleRec through a pipe_command of a user's, with every class that reads text, and as binary rows.

#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.h"
#include "data_feed.pb.h"
#include "dataset/dataset_factory.h"
#include "dataset/instant_converter.h"
#include "shared_data.h"

namespace millrace {
namespace {

/// What all rows of a dataset add up to.
struct Sums {
  int64_t rows = 0;
  uint64_t labels = 0;
  uint64_t ids = 0;
  int64_t id_count = 0;  ///< without padding zeros
  int64_t long_ids = 0;  ///< of 20 digits
  double floats = 0;

  void Add(const SlotBatch& batch) {
    rows += batch.rows();
    for (const SlotSpec& slot : batch.schema().used()) {
      for (const uint64_t id : batch.ids(slot.id)) {
        if (slot.is_dense) {
          labels += id;
          continue;
        }
        ids += id;
        id_count += id != 0;
        long_ids += id >= 10000000000000000000U;
      }
      for (const float value : batch.floats(slot.id)) floats += static_cast<double>(value);
    }
  }
};

Sums ReadAll(const std::string& class_name, const DataFeedDesc& desc, const std::vector<std::string>& files) {
  DatasetSettings settings;
  settings.threads = 2;
  const auto dataset =
      DatasetFactory::Builtin().Create(class_name, desc, files, DataFeedFactory::Builtin(), settings).value();
  if (auto* memory = dynamic_cast<InMemoryControl*>(dataset.get())) {
    EXPECT_TRUE(memory->LoadIntoMemory({}).ok());
  }
  EXPECT_TRUE(dataset->BeginPass({}).ok());
  Sums sums;
  while (const BatchPtr batch = dataset->source(0).Next({}).value()) sums.Add(*batch);
  EXPECT_TRUE(dataset->EndPass().ok());
  return sums;
}

void AddSlot(const std::string& name, const std::string& type, int width, DataFeedDesc* desc) {
  Slot* slot = desc->mutable_multi_slot_desc()->add_slots();
  slot->set_name(name);
  slot->set_type(type);
  slot->set_is_used(true);
  if (width == 0) return;
  slot->set_is_dense(true);
  slot->add_shape(-1);
  slot->add_shape(width);
}

/// Reads `file` with every class and gives the sums to `check`.
template <class Check>
void ReadWithEveryClass(const DataFeedDesc& desc, const std::string& file, const Check& check) {
  for (const std::string class_name : {"QueueDataset", "InMemoryDataset"}) {
    SCOPED_TRACE(class_name);
    check(ReadAll(class_name, desc, {file}));
  }
  SCOPED_TRACE("FileInstantDataset");
  const TempDir dir = TempDir::Create("paddlerec_").value();
  ConvertRequest request;
  request.desc = &desc;
  request.files = {file};
  request.output_dir = dir.path();
  ASSERT_TRUE(ConvertToInstant(request, {}).ok());
  DataFeedDesc binary = desc;
  binary.clear_pipe_command();
  check(ReadAll("FileInstantDataset", binary, {dir.path() + "/part-00000"}));
}

TEST(PaddleRecSamples, ClicksOfTheDnnModel) {
  MR_SHARED_OR_SKIP(shared);
  DataFeedDesc desc;
  AddSlot("click", "uint64", 1, &desc);
  AddSlot("dense_feature", "float", 13, &desc);
  AddSlot("s1..s26", "uint64", 0, &desc);
  desc.set_pipe_command("python3 '" + shared +
                        "/data/tools/slots.py' --slots click,dense_feature,1..26 --float dense_feature");
  ReadWithEveryClass(desc, shared + "/data/paddlerec_samples/rank/dnn/data/sample_data/train/sample_train.txt.gz",
                     [](const Sums& sums) {
                       EXPECT_EQ(sums.rows, 80);
                       EXPECT_EQ(sums.labels, 23U);
                       EXPECT_EQ(sums.ids, 902638837U);
                       EXPECT_NEAR(sums.floats, 168.11463, 1e-4);
                     });
}

TEST(PaddleRecSamples, RaggedLogWithIdsOf64Bits) {
  MR_SHARED_OR_SKIP(shared);
  DataFeedDesc desc;
  AddSlot("label", "uint64", 1, &desc);
  AddSlot("s2..s301", "uint64", 0, &desc);
  desc.set_pipe_command("python3 '" + shared + "/data/tools/slots.py' --reverse --slots 1..301");
  ReadWithEveryClass(desc, shared + "/data/paddlerec_samples/rank/slot_dnn/data/demo_10.gz", [](const Sums& sums) {
    EXPECT_EQ(sums.rows, 10);
    EXPECT_EQ(sums.labels, 4U);
    EXPECT_EQ(sums.id_count, 4537);
    EXPECT_EQ(sums.long_ids, 2091);
    EXPECT_EQ(sums.ids, 7582957755401358309U);
  });
}

}  // namespace
}  // namespace millrace
