// Loading files into memory, and passes over them; passes over binary files beside a plain copy of their bytes.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "comm/local_cluster.h"
#include "core/elapsed.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "data_feed.pb.h"
#include "dataset/file_instant_dataset.h"
#include "dataset/in_memory_dataset.h"
#include "dataset/instant_converter.h"
#include "dataset/row_exchange.h"
#include "micro/criteo_log.h"

namespace millrace {
namespace {

// 8 files of the Criteo-like log, which go with the process.
struct LogFiles {
  static constexpr size_t kFiles = 8;
  static constexpr size_t kLines = 40000;

  LogFiles() {
    const bench::CriteoLog log = bench::MakeCriteoLog(false, kLines);
    for (size_t i = 0; i < kFiles; ++i) {
      names.push_back(folder.path() + "/part-" + std::to_string(i));
      std::ofstream(names.back(), std::ios::binary) << log.text();
    }
    bytes = static_cast<int64_t>(log.size * kFiles);
  }

  TempDir folder = TempDir::Create("dataset_bench").value();
  std::vector<std::string> names;
  int64_t bytes = 0;
};

const LogFiles& Files() {
  static const LogFiles files;
  return files;
}

std::unique_ptr<InMemoryDataset> MakeDataset(int threads) {
  DataFeedDesc desc = bench::CriteoDesc();
  desc.set_batch_size(512);
  InMemoryDatasetOptions options;
  options.threads = threads;
  return std::move(InMemoryDataset::Create(desc, Files().names, std::move(options)).value());
}

void BM_LoadIntoMemory(benchmark::State& state) {
  int64_t rows = 0;
  for (auto _ : state) {
    auto dataset = MakeDataset(static_cast<int>(state.range(0)));
    if (!dataset->LoadIntoMemory({}).ok()) state.SkipWithError("the load failed");
    rows = dataset->MemoryDataSize();
    state.counters["bytes/row"] = static_cast<double>(dataset->MemoryBytes()) / static_cast<double>(rows);
  }
  state.SetItemsProcessed(state.iterations() * rows);
  state.SetBytesProcessed(state.iterations() * Files().bytes);
}
BENCHMARK(BM_LoadIntoMemory)
    ->Arg(1)
    ->Arg(2)
    ->ArgName("threads")
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Shuffled batches of one worker, as it sees them.
void BM_ShuffledPass(benchmark::State& state) {
  auto dataset = MakeDataset(2);
  if (!dataset->LoadIntoMemory({}).ok() || !dataset->LocalShuffle(1).ok()) state.SkipWithError("the load failed");
  for (auto _ : state) {
    if (!dataset->BeginPass({}).ok()) state.SkipWithError("no pass");
    while (dataset->source(0).Next({}).value() != nullptr) {
    }
    if (!dataset->EndPass().ok()) state.SkipWithError("no pass");
  }
  state.SetItemsProcessed(state.iterations() * dataset->MemoryDataSize());
}
BENCHMARK(BM_ShuffledPass)->Unit(benchmark::kMillisecond);

void BM_LocalShuffle(benchmark::State& state) {
  auto dataset = MakeDataset(2);
  if (!dataset->LoadIntoMemory({}).ok()) state.SkipWithError("the load failed");
  uint64_t seed = 0;
  for (auto _ : state) {
    if (!dataset->LocalShuffle(++seed).ok()) state.SkipWithError("no shuffle");
  }
  state.SetItemsProcessed(state.iterations() * dataset->MemoryDataSize());
}
BENCHMARK(BM_LocalShuffle)->Unit(benchmark::kMillisecond);

// Rows of all ranks go to their streams; loading them is not counted. Ranks are threads: a network comes on top.
void BM_ExchangeRows(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  constexpr int kStreams = 8;
  const auto& files = Files().names;
  static_assert(LogFiles::kFiles == kStreams);
  for (auto _ : state) {
    LocalCluster cluster(ranks);
    std::vector<std::jthread> threads;
    std::vector<double> seconds(static_cast<size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        RankGroup group(cluster.rank(r));
        const auto [first, count] = group.ShareOf(kStreams);
        DataFeedDesc desc = bench::CriteoDesc();
        desc.set_batch_size(512);
        InMemoryDatasetOptions options;
        options.rows.are_exchanged = true;
        std::vector<std::unique_ptr<InMemoryDataset>> datasets;
        std::vector<InMemoryDataset*> streams;
        for (int s = first; s < first + count; ++s) {
          datasets.push_back(InMemoryDataset::Create(desc, {files[static_cast<size_t>(s)]}, options).value());
          streams.push_back(datasets.back().get());
          datasets.back()->LoadIntoMemory({}).value();
        }
        RowShuffle shuffle;
        shuffle.ranks = &group;
        shuffle.targets = {.seed = 1, .streams = kStreams};
        std::map<std::string, int64_t> counters;
        if (!group.communicator().Barrier().ok()) return;
        const auto start = std::chrono::steady_clock::now();
        if (!ExchangeRows(shuffle, streams, first, files, &counters, {}).ok()) return;
        seconds[static_cast<size_t>(r)] = SecondsSince(start);
      });
    }
    threads.clear();
    if (*std::min_element(seconds.begin(), seconds.end()) == 0) state.SkipWithError("the exchange failed");
    state.SetIterationTime(*std::max_element(seconds.begin(), seconds.end()));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(LogFiles::kFiles * LogFiles::kLines));
}
BENCHMARK(BM_ExchangeRows)->Arg(1)->Arg(2)->Arg(4)->ArgName("ranks")->UseManualTime()->Unit(benchmark::kMillisecond);

constexpr int kBatchRows = 512;

DataFeedDesc BatchesDesc() {
  DataFeedDesc desc = bench::CriteoDesc();
  desc.set_batch_size(kBatchRows);
  return desc;
}

// The log as one binary file, read once so that the page cache has it.
const std::string& BinaryFile() {
  static const std::string file = [] {
    static const TempDir folder = TempDir::Create("binary_bench").value();
    const DataFeedDesc desc = BatchesDesc();
    ConvertRequest request;
    request.desc = &desc;
    request.files = Files().names;
    request.output_dir = folder.path();
    request.part_bytes = UINT64_MAX;
    ConvertToInstant(request, {}).value();
    std::string name = folder.path() + "/part-00000";
    ReadFile(name).value();
    return name;
  }();
  return file;
}

// Batches of one thread from binary rows in the page cache.
void BM_FileInstantPass(benchmark::State& state) {
  auto dataset = FileInstantDataset::Create(BatchesDesc(), {BinaryFile()}, DataFeedFactory::Builtin()).value();
  int64_t rows = 0;
  for (auto _ : state) {
    if (!dataset->BeginPass({}).ok()) state.SkipWithError("no pass");
    while (dataset->source(0).Next({}).value() != nullptr) {
    }
    rows += dataset->EndPass().value().rows;
  }
  state.SetItemsProcessed(rows);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(std::filesystem::file_size(BinaryFile())));
}
BENCHMARK(BM_FileInstantPass)->Unit(benchmark::kMillisecond);

// What binds it: the same bytes, mapped anew, copied to a buffer of a batch's size.
void BM_MappedCopy(benchmark::State& state) {
  std::vector<uint8_t> buffer(static_cast<size_t>(kBatchRows) * 512);
  for (auto _ : state) {
    const MappedFile file = MappedFile::Open(BinaryFile()).value();
    const std::span<const uint8_t> bytes = file.bytes();
    for (size_t at = 0; at < bytes.size(); at += buffer.size()) {
      std::memcpy(buffer.data(), bytes.data() + at, std::min(buffer.size(), bytes.size() - at));
      benchmark::ClobberMemory();
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(std::filesystem::file_size(BinaryFile())));
}
BENCHMARK(BM_MappedCopy)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace millrace
