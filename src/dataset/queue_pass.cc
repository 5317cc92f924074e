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

/// Lowers the reader's priority so that it runs when workers wait rather than instead of them: a worker interrupted
/// within a batch applies a stale gradient, which costs quality on few CPUs (docs/adr/0003).
void YieldToWorkers() {
  constexpr int kNiceness = 10;
  // If the system refuses, the priority does not change.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
}

}  // namespace

struct QueuePass::Reader {
  explicit Reader(QueuePass& pass)
      : lines(pass.blocks_, *pass.bad_lines_,
              {.held = pass.options_.held, .trained = pass.trained_.empty() ? nullptr : &pass.trained_}) {}

  int number = 0;
  std::string name;  ///< in a trace
  std::unique_ptr<DataFeed> feed;
  LineReader lines;
  int64_t traced_from = 0;          ///< start of the block
  BatchPtr batch;                   ///< attached to the feed, unless null
  std::optional<RowFilter> filter;  ///< for a pass that removes rows
  int64_t rows = 0;
  int64_t unreported_lines = 0;  ///< not yet reported to bad_lines_
  double parse_seconds = 0;
  double wait_seconds = 0;
};

Result<BatchPtr> QueuePass::Source::Next(std::stop_token stop) {
  Channel<BatchPtr>& channel = pass_->channel_;
  if (std::optional<BatchPtr> batch = channel.TryPop()) return std::move(*batch);
  if (pass_->options_.readers == 0 && !channel.closed()) {
    MR_TRY(Caught("reading rows", [&] { return pass_->ReadForCaller(stop); }));
  }
  const Clock::time_point start = Clock::now();
  Result<std::optional<BatchPtr>> batch = channel.Pop(stop);
  wait_seconds_ += SecondsSince(start);
  if (!batch.ok()) return std::move(batch).status();
  return *batch ? std::move(**batch) : BatchPtr();
}

QueuePass::QueuePass(const QueuePassOptions& options, const InputOpener& opener, const std::vector<std::string>& files,
                     BatchPool& pool, std::vector<std::unique_ptr<DataFeed>> feeds, std::unique_ptr<BadLines> bad_lines,
                     ConsumedRanges trained, BadLinePlaces& places)
    : options_(options),
      pool_(&pool),
      trained_(std::move(trained)),
      bad_lines_(std::move(bad_lines)),
      places_(&places),
      blocks_(opener, files, options.cut,
              {.lanes = options.readers,
               .retries = options.retries,
               .spans = options.spans,
               .traced_as = options.traced_as,
               .as_they_come = options.readers == 0,
               .shared = options.shared_files}),
      channel_(options.prefetch_batches),
      sources_(static_cast<size_t>(options.workers), Source(*this)),
      readers_at_work_(std::max(options.readers, 1)) {
  for (int i = 0; i < readers_at_work_; ++i) {
    readers_.push_back(std::make_unique<Reader>(*this));
    readers_.back()->number = i;
    readers_.back()->name = options.traced_as + "reader " + std::to_string(i);
    readers_.back()->feed = std::move(feeds[static_cast<size_t>(i)]);
    if (options.thinning.is_active())
      readers_.back()->filter.emplace(options.thinning, files, pool, options.batch_size);
  }
  if (options_.readers == 0) return;
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

bool QueuePass::is_paused() const {
  return options_.readers == 0 && readers_[0]->lines.at_end() && blocks_.is_paused();
}

Status QueuePass::ReadAll(Reader& reader, const std::stop_token& stop) {
  for (;;) {
    MR_ASSIGN(BatchPtr batch, ReadBatch(reader, stop));
    if (batch == nullptr) return EndReader(reader, stop);
    MR_TRY(Emit(reader, std::move(batch), stop));
  }
}

Status QueuePass::ReadForCaller(const std::stop_token& stop) {
  Reader& reader = *readers_[0];
  Result<BatchPtr> batch = ReadBatch(reader, stop);
  if (batch.ok()) return *batch == nullptr ? EndReader(reader, stop) : Emit(reader, std::move(*batch), stop);
  // A source that wrote rows before a bad line cannot write them again.
  if (reader.batch != nullptr && reader.feed->rows() > 0 && !stop.stop_requested() && reader.feed->Detach().ok()) {
    MR_TRY(Emit(reader, std::move(reader.batch), stop));
  }
  channel_.Close(std::move(batch).status());
  return Status::Ok();
}

Result<BatchPtr> QueuePass::ReadBatch(Reader& reader, const std::stop_token& stop) {
  for (;;) {
    MR_ASSIGN(BatchPtr batch, ReadWholeBatch(reader, stop));
    if (batch == nullptr || !reader.filter.has_value()) return batch;
    if (BatchPtr full = reader.filter->Put(std::move(batch))) return full;
  }
}

Result<BatchPtr> QueuePass::ReadWholeBatch(Reader& reader, const std::stop_token& stop) {
  for (;;) {
    const int rows = reader.batch == nullptr ? 0 : reader.feed->rows();
    if (rows == options_.batch_size || (rows > 0 && is_paused())) {
      MR_TRY(reader.feed->Detach());
      return std::move(reader.batch);
    }
    if (reader.lines.at_end()) {
      MR_ASSIGN(const bool got, reader.lines.NextBlock(reader.number, reader.feed.get(), stop));
      if (!got) return BatchPtr();
      reader.traced_from = options_.spans != nullptr ? SteadyNanoseconds() : 0;
    }
    const Clock::time_point start = Clock::now();
    const Status parsed = ParseLines(reader);
    reader.parse_seconds += SecondsSince(start);
    MR_TRY(parsed);
    if (!reader.lines.at_end()) continue;
    bad_lines_->AddLines(std::exchange(reader.unreported_lines, 0));
    if (options_.spans != nullptr) {
      options_.spans->Add(reader.name, "parse", reader.lines.file(), reader.traced_from);
    }
  }
}

Status QueuePass::ParseLines(Reader& reader) {
  LineReader& lines = reader.lines;
  DataFeed& feed = *reader.feed;
  const uint32_t file = lines.block().file;
  while (!lines.at_end()) {
    if (lines.SkipTrained()) continue;
    if (reader.batch == nullptr) {
      reader.batch = pool_->Take();
      MR_TRY(feed.Attach(reader.batch.get()));
    }
    ++reader.unreported_lines;
    const uint64_t position = lines.number() - 1;
    const auto on_bad = [&](const LineError& error) { return NoteBadLine(reader, position, error); };
    MR_ASSIGN(const LineResult result, lines.Read(on_bad, feed));
    ExtendSpans(reader.batch->mutable_spans(), file, position);
    if (result != LineResult::kRow) continue;
    reader.batch->mutable_origins().push_back({file, position + 1});
    if (feed.rows() == options_.batch_size) return Status::Ok();
  }
  return Status::Ok();
}

Status QueuePass::NoteBadLine(Reader& reader, uint64_t position, const LineError& error) {
  bad_lines_->AddLines(std::exchange(reader.unreported_lines, 0));
  MR_TRY(bad_lines_->CheckShare());
  if (!error.ends_reading) places_->Add(reader.lines.block().file, position, LineErrorKindName(error.kind));
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
  BatchPtr last = std::move(reader.batch);
  if (last != nullptr) MR_TRY(reader.feed->Detach());
  if (reader.filter.has_value()) {
    BatchPtr full = last != nullptr ? reader.filter->Put(std::move(last)) : BatchPtr();
    if (full != nullptr) MR_TRY(Emit(reader, std::move(full), stop));
    last = reader.filter->TakeRest();
  }
  std::vector<BatchPtr> rest;
  {
    const std::lock_guard lock(remainder_mutex_);
    if (last != nullptr) remainders_.push_back(std::move(last));
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
    // Bad and blank lines after the last row count as trained with it.
    std::vector<BatchSpan>& spans = filling->mutable_spans();
    spans.insert(spans.end(), spans_without_rows.begin(), spans_without_rows.end());
    MR_TRY(Emit(reader, std::move(filling), stop));
  }
  is_whole_ = true;
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
    reader->lines.AddTo(*reader->feed, &stats);
    if (reader->filter.has_value() && reader->filter->left_out() > 0) {
      stats.counters["downsampled"] += reader->filter->left_out();
    }
    stats.stage_seconds["parse"] += reader->parse_seconds;
    stats.stage_seconds["wait_full"] += reader->wait_seconds;
    reader->feed->counters().AddTo(stats.counters);
  }
  stats.names.is_partial = !is_whole_ || !trained_.empty();
  if (rows_dropped_ > 0) stats.counters["drop_last"] = rows_dropped_;
  for (const Source& source : sources_) stats.stage_seconds["wait_empty"] += source.wait_seconds();
  return stats;
}

}  // namespace millrace
