#include "dataset/queue_pass.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/caught.h"
#include "core/elapsed.h"
#include "dataset/batch_rows.h"
#include "dataset/line_input.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

/// Lets the calling reader run when a worker waits rather than in its place: a worker that is stopped in the middle of
/// a batch updates with a gradient that has grown old, and with few processors that costs quality (docs/adr/0003).
void YieldToWorkers() {
  constexpr int kNiceness = 10;
  // A system that refuses leaves the thread as it was.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
}

/// The rest of a block's text behind `lines` lines.
std::string_view SkipLines(const LineBlock& block, std::string_view text, uint64_t lines) {
  for (; lines > 0; --lines) block.TakeLine(&text);
  return text;
}

}  // namespace

struct QueuePass::Reader {
  Reader(const LineBlockQueue& blocks, BadLines& bad_lines) : lines(blocks, bad_lines) {}

  int number = 0;
  std::string name;  ///< in a trace
  std::unique_ptr<DataFeed> feed;
  LineReader lines;
  LineBlock block;
  BatchPtr batch;  ///< attached to the feed, unless null
  int64_t rows = 0;
  int64_t skipped_lines = 0;
  int64_t unreported_lines = 0;  ///< that bad_lines_ was not told of
  double parse_seconds = 0;
  double wait_seconds = 0;
};

Result<BatchPtr> QueuePass::Source::Next(std::stop_token stop) {
  if (std::optional<BatchPtr> batch = channel_->TryPop()) return std::move(*batch);
  const Clock::time_point start = Clock::now();
  Result<std::optional<BatchPtr>> batch = channel_->Pop(stop);
  wait_seconds_ += SecondsSince(start);
  if (!batch.ok()) return std::move(batch).status();
  return *batch ? std::move(**batch) : BatchPtr();
}

QueuePass::QueuePass(const QueuePassOptions& options, const InputOpener& opener, const std::vector<std::string>& files,
                     BatchPool& pool, std::vector<std::unique_ptr<DataFeed>> feeds, std::unique_ptr<BadLines> bad_lines,
                     ConsumedRanges trained, BadLinePlaces& places)
    : options_(options),
      files_(&files),
      pool_(&pool),
      trained_(std::move(trained)),
      bad_lines_(std::move(bad_lines)),
      places_(&places),
      blocks_(opener, files, options.cut, options.readers, options.retries, options.spans),
      channel_(options.prefetch_batches),
      sources_(static_cast<size_t>(options.workers), Source(channel_)),
      readers_at_work_(options.readers) {
  for (int i = 0; i < options_.readers; ++i) {
    readers_.push_back(std::make_unique<Reader>(blocks_, *bad_lines_));
    readers_.back()->number = i;
    readers_.back()->name = "reader " + std::to_string(i);
    readers_.back()->feed = std::move(feeds[static_cast<size_t>(i)]);
  }
  EndWith(Caught("reading rows", [this] {
    for (const std::unique_ptr<Reader>& reader : readers_) {
      threads_.emplace_back([this, &reader = *reader] {
        YieldToWorkers();
        EndWith(Caught("reading rows", [&] { return ReadAll(reader, stop_.get_token()); }));
      });
    }
    return Status::Ok();
  }));
}

QueuePass::~QueuePass() { stop_.request_stop(); }

void QueuePass::EndWith(Status status) {
  if (status.ok()) return;
  channel_.Close(std::move(status));
  stop_.request_stop();
}

Status QueuePass::ReadAll(Reader& reader, const std::stop_token& stop) {
  for (;;) {
    MR_ASSIGN(const bool got, blocks_.Next(reader.number, reader.block, stop));
    if (!got) break;
    const Clock::time_point start = Clock::now();
    const int64_t traced_from = options_.spans != nullptr ? SteadyNanoseconds() : 0;
    const double waited = reader.wait_seconds;
    const Status parsed = ParseBlock(reader, stop);
    if (options_.spans != nullptr) {
      options_.spans->Add(reader.name, "parse", (*files_)[reader.block.file], traced_from);
    }
    reader.parse_seconds += SecondsSince(start) - (reader.wait_seconds - waited);
    MR_TRY(parsed);
  }
  return EndReader(reader, stop);
}

Status QueuePass::ParseBlock(Reader& reader, const std::stop_token& stop) {
  const LineBlock& block = reader.block;
  MR_TRY(BeginBlock(block, blocks_, reader.feed.get()));
  std::string_view text = block.text();
  uint64_t unit = block.first_line - 1;
  const uint64_t end = unit + block.lines;
  if (trained_.empty()) {
    MR_TRY(ParseLines(reader, text, unit, stop));
  } else {
    while (unit < end) {
      const uint64_t untrained = std::min(trained_.NextUntrained(block.file, unit), end);
      text = SkipLines(block, text, untrained - unit);
      reader.skipped_lines += static_cast<int64_t>(untrained - unit);
      unit = untrained;
      uint64_t trained = unit;
      while (trained < end && !trained_.Contains(block.file, trained)) ++trained;
      const std::string_view rest = SkipLines(block, text, trained - unit);
      MR_TRY(ParseLines(reader, text.substr(0, text.size() - rest.size()), unit, stop));
      text = rest;
      unit = trained;
    }
  }
  bad_lines_->AddLines(std::exchange(reader.unreported_lines, 0));
  return Status::Ok();
}

Status QueuePass::ParseLines(Reader& reader, std::string_view text, uint64_t unit, const std::stop_token& stop) {
  const LineBlock& block = reader.block;
  const uint32_t file = block.file;
  DataFeed& feed = *reader.feed;
  while (!text.empty()) {
    if (reader.batch == nullptr) {
      reader.batch = pool_->Take();
      MR_TRY(feed.Attach(reader.batch.get()));
    }
    const std::string_view line = block.TakeLine(&text);
    ++reader.unreported_lines;
    const auto on_bad = [&](const LineError& error) { return NoteBadLine(reader, unit, error); };
    MR_ASSIGN(const LineResult result, reader.lines.Read(block, unit + 1, line, on_bad, feed));
    ExtendSpans(reader.batch->mutable_spans(), file, unit);
    ++unit;
    if (result != LineResult::kRow) continue;
    reader.batch->mutable_origins().push_back({file, unit});
    if (feed.rows() == options_.batch_size) {
      MR_TRY(feed.Detach());
      MR_TRY(Emit(reader, std::move(reader.batch), stop));
    }
  }
  return Status::Ok();
}

Status QueuePass::NoteBadLine(Reader& reader, uint64_t unit, const LineError& error) {
  bad_lines_->AddLines(std::exchange(reader.unreported_lines, 0));
  MR_TRY(bad_lines_->CheckShare());
  if (!error.ends_reading) places_->Add(reader.block.file, unit, LineErrorKindName(error.kind));
  return Status::Ok();
}

Status QueuePass::Emit(Reader& reader, BatchPtr batch, const std::stop_token& stop) {
  reader.rows += batch->rows();
  if (channel_.TryPush(batch)) return Status::Ok();
  const Clock::time_point start = Clock::now();
  const int64_t traced_from = options_.spans != nullptr ? SteadyNanoseconds() : 0;
  Status status = channel_.Push(std::move(batch), stop);
  reader.wait_seconds += SecondsSince(start);
  if (options_.spans != nullptr) options_.spans->Add(reader.name, "wait for workers", "", traced_from);
  return status;
}

Status QueuePass::EndReader(Reader& reader, const std::stop_token& stop) {
  std::vector<BatchPtr> rest;
  {
    const std::lock_guard lock(remainder_mutex_);
    if (reader.batch != nullptr) {
      MR_TRY(reader.feed->Detach());
      remainders_.push_back(std::move(reader.batch));
    }
    if (--readers_at_work_ > 0) return Status::Ok();
    rest = std::move(remainders_);
  }
  MR_TRY(bad_lines_->CheckShare());
  BatchPtr filling;
  std::vector<BatchSpan> spans_without_rows;
  for (BatchPtr& batch : rest) {
    if (batch->rows() == 0) {
      spans_without_rows.insert(spans_without_rows.end(), batch->spans().begin(), batch->spans().end());
      continue;
    }
    if (filling == nullptr) {
      filling = std::move(batch);
      continue;
    }
    const int taken = std::min(batch->rows(), options_.batch_size - filling->rows());
    AppendRows(*batch, 0, taken, *filling);
    if (filling->rows() < options_.batch_size) continue;
    MR_TRY(Emit(reader, std::exchange(filling, nullptr), stop));
    if (taken == batch->rows()) continue;
    filling = pool_->Take();
    AppendRows(*batch, taken, batch->rows(), *filling);
  }
  if (filling != nullptr && options_.drop_last && filling->rows() < options_.batch_size) {
    rows_dropped_ = filling->rows();
  } else if (filling != nullptr) {
    // Bad and blank lines without a row behind them count as trained with the last row.
    std::vector<BatchSpan>& spans = filling->mutable_spans();
    spans.insert(spans.end(), spans_without_rows.begin(), spans_without_rows.end());
    MR_TRY(Emit(reader, std::move(filling), stop));
  }
  channel_.Close(Status::Ok());
  return Status::Ok();
}

PassStats QueuePass::Finish() {
  stop_.request_stop();
  for (std::jthread& thread : threads_) thread.join();
  threads_.clear();
  PassStats stats = StatsOfFiles(blocks_, *bad_lines_);
  for (const std::unique_ptr<Reader>& reader : readers_) {
    stats.rows += reader->rows;
    stats.stage_seconds["parse"] += reader->parse_seconds;
    stats.stage_seconds["wait_full"] += reader->wait_seconds;
    if (reader->skipped_lines > 0) stats.counters["trained_before"] += reader->skipped_lines;
    reader->feed->counters().AddTo(stats.counters);
  }
  if (rows_dropped_ > 0) stats.counters["drop_last"] = rows_dropped_;
  for (const Source& source : sources_) stats.stage_seconds["wait_empty"] += source.wait_seconds();
  return stats;
}

}  // namespace millrace
