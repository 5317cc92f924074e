// What a rank's processors spend on what ranks send each other, in the classes that do it in a job:
//
//     mpirun -n 4 --bind-to none build/release/bin/bench_ranks KEYS BATCHES rows|copies|dense|idle FP32|BF16
//
// `rows`: each rank fetches, pulls and pushes KEYS distinct keys a batch, of the two tables of
// configs/wide_deep.prototxt, so that the rows of all ranks are asked for. `copies`: the same on copies that are
// exchanged every four batches; nearly each row is read once and exchanged once. `dense`: exchanges of KEYS parameters
// and as many values of their optimizer. `idle`: the thread that trains is busy for ten milliseconds a batch, and sends
// nothing. Rank 0 prints one line of JSON: microseconds of processor time a batch, means over ranks, of the thread that
// trains and of all others of the process, which is the communicator's.

#include <google/protobuf/text_format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/mpi_plugin.h"
#include "core/hash.h"
#include "model.pb.h"
#include "ops/builtin_ops.h"
#include "ranks/dense_exchange.h"
#include "ranks/rank_group.h"

namespace millrace {
namespace {

/// Rows that batches choose from, so that looking one up misses the caches as it does in a job.
constexpr uint64_t kRows = 1 << 20;
constexpr int kWarm = 8;
constexpr int kGeoSteps = 4;

struct Seconds {
  double worker = 0;
  double process = 0;
};

double Of(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

Seconds Now() {
  rusage thread{};
  rusage process{};
  getrusage(RUSAGE_THREAD, &thread);
  getrusage(RUSAGE_SELF, &process);
  return {Of(thread), Of(process)};
}

std::unique_ptr<SparseTable> MakeTable(RankTables& ranks, const char* text, const RankTableOptions& options) {
  TableDesc desc;
  if (!google::protobuf::TextFormat::ParseFromString(text, &desc)) std::abort();
  return RankTableFactory(TableFactory::Builtin(), ranks, options).Create(desc, 1).value();
}

/// Distinct keys, ascending as little as those of a batch are.
std::vector<uint64_t> KeysOf(int rank, int batch, size_t count) {
  std::vector<uint64_t> keys;
  const uint64_t seed = static_cast<uint64_t>(rank) * 100'003 + static_cast<uint64_t>(batch);
  for (uint64_t i = 0; i < count; ++i) keys.push_back(HashedNumber(seed, i) % kRows);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[HashedNumber(seed + 1, i) % i]);
  return keys;
}

Status UseRows(RankGroup& ranks, size_t count, int batches, const RankTableOptions& options, Seconds* begin) {
  const std::unique_ptr<SparseTable> wide = MakeTable(
      ranks.tables(), "name: \"wide\" dim: 1 optimizer { ftrl { alpha: 0.05 l1: 1 } } initial_rows: 1000000", options);
  const std::unique_ptr<SparseTable> deep = MakeTable(
      ranks.tables(),
      "name: \"deep\" dim: 16 init { uniform: 0.01 } optimizer { adagrad { lr: 0.05 } } initial_rows: 1000000",
      options);
  const std::array<SparseTable*, 2> tables = {wide.get(), deep.get()};
  std::vector<uint64_t> own;
  for (uint64_t key = 0; key < kRows; ++key) {
    if (ranks.tables().OwnerOf(VirtualShardOf(key)) == ranks.rank()) own.push_back(key);
  }
  RowBatch rows;
  for (SparseTable* table : tables) MR_TRY(table->Pull(own, PullMode::kInsert, &rows));
  std::vector<std::vector<uint64_t>> keys;
  for (int batch = 0; batch < batches + kWarm + 1; ++batch) keys.push_back(KeysOf(ranks.rank(), batch, count));
  const std::vector<float> gradients(count * 16, 0.01f);
  std::array<RowBatch, 2> pulled;
  const auto fetch = [&](int batch) {
    if (ranks.size() == 1) return Status::Ok();
    for (SparseTable* table : tables) {
      MR_TRY(dynamic_cast<Prefetchable&>(*table).Fetch(keys[static_cast<size_t>(batch)]));
    }
    return Status::Ok();
  };
  MR_TRY(ranks.communicator().Barrier());
  MR_TRY(fetch(0));
  for (int batch = 0; batch < batches + kWarm; ++batch) {
    if (batch == kWarm) *begin = Now();
    const std::vector<uint64_t>& now = keys[static_cast<size_t>(batch)];
    MR_TRY(fetch(batch + 1));
    for (size_t t = 0; t < 2; ++t) MR_TRY(tables[t]->Pull(now, PullMode::kInsert, &pulled[t]));
    for (size_t t = 0; t < 2; ++t) {
      const size_t floats = now.size() * static_cast<size_t>(tables[t]->shape().dim);
      MR_TRY(tables[t]->Push(pulled[t], {gradients.data(), floats}, {.lr = 0.05f, .examples = 512}));
    }
  }
  MR_TRY(ranks.tables().Flush());
  return ranks.communicator().Barrier();
}

Status UseDense(RankGroup& ranks, size_t count, int batches, WireFloat wire, Seconds* begin) {
  const std::string tensor =
      "persistable: true type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: " + std::to_string(count) +
      " } } } }";
  const std::string text = "blocks { idx: 0 parent_idx: -1 vars { name: \"w\" " + tensor + " vars { name: \"acc\" " +
                           tensor + " vars { name: \"g\" " + tensor +
                           " vars { name: \"lr\" persistable: true type { type: LOD_TENSOR lod_tensor { tensor { "
                           "data_type: FP32 dims: 1 } } } } ops { type: \"adagrad\""
                           " inputs { parameter: \"Param\" arguments: \"w\" } inputs { parameter: \"Grad\" arguments: "
                           "\"g\" } inputs { parameter: \"Moment\" arguments: \"acc\" } inputs { parameter: "
                           "\"LearningRate\" arguments: \"lr\" } outputs { parameter: \"ParamOut\" arguments: \"w\" } "
                           "outputs { parameter: \"MomentOut\" arguments: \"acc\" } } }";
  ProgramDesc program;
  if (!google::protobuf::TextFormat::ParseFromString(text, &program)) return Internal("the program does not parse");
  OpRegistry ops;
  RegisterBuiltinOps(ops);
  MR_ASSIGN(const std::unique_ptr<const Executable> step, Executable::Compile(program, ops, {}));
  Scope root;
  for (const char* name : {"w", "acc"}) {
    auto* const values = root.Var(name)->GetMutable<Tensor>();
    std::fill_n(values->Resize<float>({static_cast<int64_t>(count)}), count, 0.5f);
  }
  MR_ASSIGN(const std::unique_ptr<DenseExchange> exchange,
            DenseExchange::Create(*step, root, ranks, {.small = 0, .wire = wire}));
  exchange->Start();
  MR_TRY(ranks.communicator().Barrier());
  for (int batch = 0; batch < batches + kWarm; ++batch) {
    if (batch == kWarm) *begin = Now();
    MR_TRY(exchange->ExchangeNow());
  }
  return ranks.communicator().Barrier();
}

Status Run(char** arguments) {
  const auto keys = static_cast<size_t>(std::atoll(arguments[1]));
  const int batches = std::atoi(arguments[2]);
  const WireFloat wire = std::string_view(arguments[4]) == "BF16" ? WireFloat::kBFloat16 : WireFloat::kFloat32;
  MR_ASSIGN(const std::unique_ptr<Communicator> communicator, OpenMpi());
  {
    RankGroup ranks(*communicator);
    const std::string_view what = arguments[3];
    Seconds begin;
    if (what == "idle") {
      MR_TRY(communicator->Barrier());
      begin = Now();
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10) * batches;
      while (std::chrono::steady_clock::now() < end) continue;
    } else if (what == "dense") {
      MR_TRY(UseDense(ranks, keys, batches, wire, &begin));
    } else {
      MR_TRY(UseRows(ranks, keys, batches, {.wire = wire, .geo_steps = what == "copies" ? kGeoSteps : 0}, &begin));
    }
    const Seconds end = Now();
    const double worker = (end.worker - begin.worker) * 1e9 / batches;
    const double process = (end.process - begin.process) * 1e9 / batches;
    std::array<int64_t, 2> sums = {static_cast<int64_t>(worker), static_cast<int64_t>(process - worker)};
    MR_TRY(communicator->SumOverRanks(sums));
    const auto of_all = [&](int64_t sum) { return static_cast<double>(sum) / 1e3 / ranks.size(); };
    if (ranks.leads()) {
      std::printf("{\"ranks\": %d, \"keys\": %zu, \"worker_us\": %.2f, \"comm_us\": %.2f}\n", ranks.size(), keys,
                  of_all(sums[0]), of_all(sums[1]));
    }
  }
  return communicator->Barrier();
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench_ranks KEYS BATCHES rows|copies|dense|idle FP32|BF16\n");
    return 2;
  }
  const millrace::Status status = millrace::Run(argv);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
