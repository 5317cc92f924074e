#include "dataset/dataset_factory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "datafeed/batch_text.h"
#include "dataset/file_instant_dataset.h"
#include "dataset/in_memory_dataset.h"
#include "dataset/queue_dataset.h"

namespace millrace {
namespace {

class DatasetFactoryTest : public ::testing::Test {
 protected:
  DatasetFactoryTest() : desc_(testing::DescOf("a:uint64")), file_(dir_.path() + "/part-0") {
    std::ofstream(file_) << "1 1\n";
  }
  Result<std::unique_ptr<Dataset>> Create(const std::string& name) const {
    return DatasetFactory::Builtin().Create(name, desc_, {file_}, DataFeedFactory::Builtin(), {});
  }

  TempDir dir_ = TempDir::Create("millrace_factory_").value();
  DataFeedDesc desc_;
  std::string file_;
};

TEST_F(DatasetFactoryTest, MakesDatasetsByClassName) {
  EXPECT_EQ(DatasetFactory::Builtin().names(),
            (std::vector<std::string>{"QueueDataset", "InMemoryDataset", "FileInstantDataset"}));
  const auto queue = Create("QueueDataset");
  ASSERT_TRUE(queue.ok()) << queue.status().ToString();
  EXPECT_NE(dynamic_cast<QueueDataset*>(queue->get()), nullptr);
  const auto in_memory = Create("InMemoryDataset");
  ASSERT_TRUE(in_memory.ok()) << in_memory.status().ToString();
  EXPECT_NE(dynamic_cast<InMemoryControl*>(in_memory->get()), nullptr);
  const auto instant = Create("FileInstantDataset");
  ASSERT_TRUE(instant.ok()) << instant.status().ToString();
  EXPECT_NE(dynamic_cast<FileInstantDataset*>(instant->get()), nullptr);
}

TEST_F(DatasetFactoryTest, AnUnknownClassIsToldWhatThereIs) {
  EXPECT_EQ(Create("QueDataset").status().ToString(),
            "invalid configuration: dataset.class_name: no dataset of the class \"QueDataset\"; did you mean "
            "\"QueueDataset\"?; there are: QueueDataset, InMemoryDataset, FileInstantDataset");
}

TEST_F(DatasetFactoryTest, AnUnknownFeedIsAnErrorForEveryDataset) {
  desc_.set_name("NoSuchFeed");
  for (const std::string& name : DatasetFactory::Builtin().names()) {
    EXPECT_EQ(Create(name).status().ToString(),
              "invalid configuration: data_desc.name: no data feed of the class \"NoSuchFeed\"; there are: "
              "MultiSlotDataFeed, MultiSlotInMemoryDataFeed, SlotRecordInMemoryDataFeed, MultiSlotFileInstantDataFeed, "
              "csv, libsvm, tfrecord, ofrecord, recordio, jpeg, json, parquet, arrow");
  }
}

TEST_F(DatasetFactoryTest, TheBinaryFeedFeedsItsDatasetAlone) {
  desc_.set_name("MultiSlotFileInstantDataFeed");
  EXPECT_TRUE(Create("FileInstantDataset").ok());
  EXPECT_EQ(
      Create("QueueDataset").status().ToString(),
      "invalid configuration: data_desc.name: MultiSlotFileInstantDataFeed reads binary files, not lines of text; "
      "it feeds a FileInstantDataset");
  EXPECT_EQ(Create("InMemoryDataset").status().code(), StatusCode::kInvalidConfig);
}

TEST_F(DatasetFactoryTest, ANameIsTakenOnce) {
  DatasetFactory factory = DatasetFactory::Builtin();
  const DatasetMaker none = [](const DataFeedDesc&, std::vector<std::string>, const DataFeedFactory&,
                               const DatasetSettings&) {
    return Result<std::unique_ptr<Dataset>>(std::unique_ptr<Dataset>());
  };
  EXPECT_TRUE(factory.Add("Mine", "gives nothing", none).ok());
  EXPECT_EQ(factory.Add("Mine", "gives nothing", none).message(),
            "a dataset of the class \"Mine\" is registered already");
}

}  // namespace
}  // namespace millrace
