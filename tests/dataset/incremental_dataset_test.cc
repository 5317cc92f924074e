// Passes with files of their own.

#include "dataset/incremental_dataset.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "datafeed/batch_text.h"
#include "dataset/dataset_factory.h"

namespace millrace {
namespace {

class IncrementalTest : public ::testing::TestWithParam<std::string> {
 protected:
  IncrementalTest() : desc_(testing::DescOf("a:uint64")) {
    desc_.set_batch_size(2);
    for (int day = 0; day < 3; ++day) {
      passes_.push_back({"day" + std::to_string(day), {dir_.path() + "/day" + std::to_string(day)}});
      std::ofstream out(passes_.back().files[0]);
      for (int row = 0; row < 3; ++row) out << "1 " << 10 * day + row + 1 << "\n";
    }
  }
  std::unique_ptr<IncrementalDataset> Make() {
    return std::make_unique<IncrementalDataset>(
        SlotSchema::Create(desc_).value(), passes_, [this](int64_t, std::vector<std::string> files) {
          made_.push_back(files[0].substr(files[0].rfind('/') + 1));
          return DatasetFactory::Builtin().Create(GetParam(), desc_, std::move(files), DataFeedFactory::Builtin(), {});
        });
  }
  std::string Pass(IncrementalDataset& dataset, int64_t pass) {
    PassOptions options;
    options.pass = pass;
    EXPECT_TRUE(dataset.PreparePass(pass, {}).ok());
    EXPECT_EQ(dataset.files(), passes_[static_cast<size_t>(pass)].files);
    EXPECT_TRUE(dataset.BeginPass(options).ok());
    std::string text;
    while (const BatchPtr batch = dataset.source(0).Next({}).value()) {
      for (int row = 0; row < batch->rows(); ++row) text += testing::RowText(*batch, row) + " ";
      text += "| ";
    }
    EXPECT_EQ(dataset.EndPass().value().lines, 3);
    return text;
  }

  TempDir dir_ = TempDir::Create("millrace_incremental_").value();
  DataFeedDesc desc_;
  std::vector<DatasetPass> passes_;
  std::vector<std::string> made_;
};

TEST_P(IncrementalTest, EachPassReadsItsFilesAndTheNextIsMadeMeanwhile) {
  const auto dataset = Make();
  EXPECT_EQ(Pass(*dataset, 0), "a=1 a=2 | a=3 | ");
  EXPECT_EQ(made_, (std::vector<std::string>{"day0", "day1"}));
  EXPECT_EQ(Pass(*dataset, 1), "a=11 a=12 | a=13 | ");
  EXPECT_EQ(Pass(*dataset, 2), "a=21 a=22 | a=23 | ");
  EXPECT_EQ(made_, (std::vector<std::string>{"day0", "day1", "day2"}));
}

TEST_P(IncrementalTest, ARunThatGoesOnBeginsWithALaterPass) {
  const auto dataset = Make();
  EXPECT_EQ(Pass(*dataset, 2), "a=21 a=22 | a=23 | ");
  EXPECT_EQ(made_, (std::vector<std::string>{"day2"}));
}

TEST_P(IncrementalTest, APassThatWasNotPreparedIsAnError) {
  const auto dataset = Make();
  EXPECT_EQ(dataset->BeginPass({}).code(), StatusCode::kInvalidConfig);
}

TEST_P(IncrementalTest, FilesThatAreGoneAreToldWithTheNameOfTheirPass) {
  passes_[1].files = {dir_.path() + "/gone"};
  const auto dataset = Make();
  EXPECT_EQ(dataset->PreparePass(0, {}).ToString(),
            "not found: pass \"day1\": no such file: \"" + dir_.path() + "/gone\"");
}

INSTANTIATE_TEST_SUITE_P(Classes, IncrementalTest, ::testing::Values("QueueDataset", "InMemoryDataset"),
                         [](const auto& param_info) { return param_info.param; });

TEST(IncrementalInMemory, ABadLineOfThePreloadedPassEndsThePassThatItBelongsTo) {
  const TempDir dir = TempDir::Create("millrace_incremental_").value();
  std::ofstream(dir.path() + "/good") << "1 1\n";
  std::ofstream(dir.path() + "/bad") << "1 x\n";
  const DataFeedDesc desc = testing::DescOf("a:uint64");
  IncrementalDataset dataset(SlotSchema::Create(desc).value(),
                             {{"good", {dir.path() + "/good"}}, {"bad", {dir.path() + "/bad"}}},
                             [&desc](int64_t, std::vector<std::string> files) {
                               return DatasetFactory::Builtin().Create("InMemoryDataset", desc, std::move(files),
                                                                       DataFeedFactory::Builtin(), {});
                             });
  ASSERT_TRUE(dataset.PreparePass(0, {}).ok());
  ASSERT_TRUE(dataset.BeginPass({}).ok());
  ASSERT_TRUE(dataset.EndPass().ok());
  EXPECT_EQ(dataset.PreparePass(1, {}).ToString(), "bad data: pass \"bad\": " + dir.path() +
                                                       "/bad:1:3: slot \"a\": expected value 1 of 1 to be an unsigned "
                                                       "integer, found \"x\"");
}

}  // namespace
}  // namespace millrace
