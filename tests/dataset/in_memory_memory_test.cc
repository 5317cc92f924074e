// What an InMemoryDataset takes and gives back: allocations of warm batches, resident memory.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "allocation_counter.h"
#include "core/file.h"
#include "data_feed.pb.h"
#include "datafeed/batch_text.h"
#include "dataset/in_memory_dataset.h"
#include "sanitized.h"

namespace millrace {
namespace {

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::unique_ptr<InMemoryDataset> MakeDataset(const std::string& folder, int lines) {
  const std::string path = folder + "/part-0";
  {
    std::ofstream file(path);
    for (int i = 0; i < lines; ++i) file << "1 " << i << " 3 0.5 " << i % 7 << ".25 1 4 " << i << " 5 6 7\n";
  }
  DataFeedDesc desc = testing::DescOf("a:uint64 d:float[3] b:uint64");
  desc.set_batch_size(100);
  return std::move(InMemoryDataset::Create(desc, {path}, {.threads = 2}).value());
}

TEST(InMemoryMemoryTest, AWarmPassAllocatesNothingPerBatch) {
  const TempDir folder = TempDir::Create("in_memory").value();
  const auto dataset = MakeDataset(folder.path(), 5000);
  ASSERT_TRUE(dataset->LoadIntoMemory({}).ok());
  for (int pass = 0; pass < 3; ++pass) {
    ASSERT_TRUE(dataset->LocalShuffle(static_cast<uint64_t>(pass)).ok());
    ASSERT_TRUE(dataset->BeginPass({.pass = pass}).ok());
    BatchSource& source = dataset->source(0);
    const AllocationCounter counter;
    int batches = 0;
    while (true) {
      const Result<BatchPtr> batch = source.Next({});
      if (*batch == nullptr) break;
      ++batches;
    }
    EXPECT_EQ(batches, 50);
    EXPECT_TRUE(pass == 0 || counter.count() == 0) << counter.count() << " allocations in pass " << pass;
    ASSERT_TRUE(dataset->EndPass().ok());
  }
}

TEST(InMemoryMemoryTest, ReleaseGivesTheMemoryBackToTheSystem) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  const TempDir folder = TempDir::Create("in_memory").value();
  const auto dataset = MakeDataset(folder.path(), 1500000);
  // The first load warms up what stays: buffers, threads' stacks, the allocator.
  ASSERT_TRUE(dataset->LoadIntoMemory({}).ok());
  dataset->ReleaseMemory();
  const int64_t before = ResidentBytes();
  ASSERT_TRUE(dataset->LoadIntoMemory({}).ok());
  ASSERT_TRUE(dataset->LocalShuffle(1).ok());
  const int64_t held = dataset->MemoryBytes();
  ASSERT_GT(ResidentBytes(), before + held / 2);
  dataset->ReleaseMemory();
  EXPECT_EQ(dataset->MemoryBytes(), 0);
  EXPECT_LT(ResidentBytes(), before + held / 10) << "before " << before << ", held " << held;
}

}  // namespace
}  // namespace millrace
