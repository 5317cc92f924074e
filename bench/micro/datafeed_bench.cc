// Parsing MultiSlot text and assembling batches from packed rows, one thread.

#include <benchmark/benchmark.h>

#include <cstring>

#include "core/rng.h"
#include "datafeed/column_sink.h"
#include "datafeed/multi_slot_scalar.h"
#include "datafeed/row_decoder.h"
#include "datafeed/row_sink.h"
#include "micro/criteo_log.h"

namespace millrace {
namespace {

constexpr int kBatchSize = 512;
constexpr size_t kLines = 20000;

const bench::CriteoLog& Log(bool wide_ids) {
  static const bench::CriteoLog narrow = bench::MakeCriteoLog(false, kLines);
  static const bench::CriteoLog wide = bench::MakeCriteoLog(true, kLines);
  return wide_ids ? wide : narrow;
}

void CountText(benchmark::State& state, const bench::CriteoLog& log) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(log.size));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(log.lines.size()));
}

// As a feed does it: find the line, parse it, hand on full batches.
template <class Parse>
void ParseIntoColumns(const bench::CriteoLog& log, SlotBatch& batch, ColumnSink& sink, Parse parse) {
  const char* at = log.buffer.data();
  const char* const end = at + log.size;
  while (at < end) {
    const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    if (!sink.attached()) sink.Attach(&batch);
    if (parse(std::string_view(at, static_cast<size_t>(newline - at)), sink) != LineResult::kRow) std::abort();
    if (sink.rows() == kBatchSize) {
      sink.Detach();
      benchmark::DoNotOptimize(batch.ids(0).data());
      batch.Clear();
    }
    at = newline + 1;
  }
}

void BM_ScalarColumns(benchmark::State& state) {
  const bench::CriteoLog& log = Log(state.range(0) != 0);
  const SlotSchema schema = bench::CriteoSchema();
  SlotBatch batch(schema);
  ColumnSink sink(schema);
  ValueCounters counters;
  LineError error;
  const MultiSlotOptions options;
  for (auto _ : state) {
    ParseIntoColumns(log, batch, sink, [&](std::string_view line, ColumnSink& to) {
      return ParseLineScalar(schema, options, line, to, counters, error);
    });
  }
  CountText(state, log);
}
BENCHMARK(BM_ScalarColumns)->Arg(0)->Arg(1)->ArgName("wide_ids")->Unit(benchmark::kMillisecond);

void BM_FastColumns(benchmark::State& state) {
  const bench::CriteoLog& log = Log(state.range(0) != 0);
  const SlotSchema schema = bench::CriteoSchema();
  SlotBatch batch(schema);
  ColumnSink sink(schema);
  MultiSlotParser parser(schema, {});
  for (auto _ : state) {
    ParseIntoColumns(log, batch, sink,
                     [&](std::string_view line, ColumnSink& to) { return parser.ParseLine(line, to); });
  }
  CountText(state, log);
}
BENCHMARK(BM_FastColumns)->Arg(0)->Arg(1)->ArgName("wide_ids")->Unit(benchmark::kMillisecond);

void PackRows(const bench::CriteoLog& log, MultiSlotParser& parser, RowSink& sink) {
  sink.BeginBlock(0);
  uint64_t number = 0;
  for (const std::string_view line : log.lines) {
    sink.set_line(++number);
    if (parser.ParseLine(line, sink) != LineResult::kRow) std::abort();
  }
}

void BM_FastRows(benchmark::State& state) {
  const bench::CriteoLog& log = Log(state.range(0) != 0);
  const SlotSchema schema = bench::CriteoSchema();
  MultiSlotParser parser(schema, {});
  const RowLayout layout(schema, {});
  for (auto _ : state) {
    PackedRows rows;
    RowSink sink(layout, &rows);
    PackRows(log, parser, sink);
  }
  CountText(state, log);
}
BENCHMARK(BM_FastRows)->Arg(0)->Arg(1)->ArgName("wide_ids")->Unit(benchmark::kMillisecond);

// Batches of rows in shuffled order, from more rows than the caches hold.
void BM_AssembleBatches(benchmark::State& state) {
  const bench::CriteoLog& log = Log(state.range(0) != 0);
  const SlotSchema schema = bench::CriteoSchema();
  MultiSlotParser parser(schema, {});
  const RowLayout layout(schema, {});
  PackedRows rows;
  RowSink sink(layout, &rows);
  std::vector<RowHandle> order;
  while (order.size() < 400000) {
    PackRows(log, parser, sink);
    order.insert(order.end(), sink.handles().begin(), sink.handles().end());
  }
  Rng rng(1);
  for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[rng.Below(i + 1)]);

  SlotBatch batch(schema);
  ColumnSink columns(schema);
  size_t next = 0;
  for (auto _ : state) {
    if (next + kBatchSize + 4 > order.size()) next = 0;
    columns.Attach(&batch);
    for (size_t i = next; i < next + kBatchSize; ++i) {
      rows.Prefetch(order[i + 4]);
      DecodeRow(layout, rows.Row(order[i]), columns);
    }
    columns.Detach();
    benchmark::DoNotOptimize(batch.ids(0).data());
    batch.Clear();
    next += kBatchSize;
  }
  state.SetItemsProcessed(state.iterations() * kBatchSize);
  state.counters["bytes/row"] =
      static_cast<double>(rows.bytes()) / static_cast<double>(order.size()) + sizeof(RowHandle);
}
BENCHMARK(BM_AssembleBatches)->Arg(0)->Arg(1)->ArgName("wide_ids");

}  // namespace
}  // namespace millrace
