#include "dataset/row_loader.h"

#include <chrono>
#include <thread>

#include "core/caught.h"
#include "core/elapsed.h"
#include "datafeed/row_sink.h"
#include "dataset/feed_rows.h"

namespace millrace {
struct RowLoader::Reader {
  Reader(int lane, std::unique_ptr<DataFeed> line_feed, RowLoader& loader, PackedRows* packed)
      : number(lane),
        feed(std::move(line_feed), *loader.schema_, loader.options_.thinning),
        lines(loader.blocks_, *loader.bad_lines_, loader.options_.rules),
        sink(*loader.layout_, packed) {}

  int number;
  FeedRows feed;
  LineReader lines;
  RowSink sink;
  int64_t rows = 0;
  double parse_seconds = 0;
};

RowLoader::RowLoader(const InputOpener& opener, const std::vector<std::string>& files, const SlotSchema& schema,
                     const RowLayout& layout, BadLines& bad_lines, const Options& options)
    : schema_(&schema),
      layout_(&layout),
      bad_lines_(&bad_lines),
      options_(options),
      blocks_(opener, files, options.cut, {.lanes = options.threads, .retries = options.retries}) {}

Result<PassStats> RowLoader::Load(PackedRows* rows, InputChannel* input, std::stop_token stop) {
  std::vector<Reader> readers;
  readers.reserve(static_cast<size_t>(options_.threads));
  for (int i = 0; i < options_.threads; ++i) {
    MR_ASSIGN(std::unique_ptr<DataFeed> feed, options_.make_feed());
    readers.emplace_back(i, std::move(feed), *this, rows);
  }
  {
    std::stop_source any_stop;
    const std::stop_callback on_stop(std::move(stop), [&any_stop] { any_stop.request_stop(); });
    const auto end_with = [this, &any_stop](Status status) {
      if (status.ok()) return;
      const std::lock_guard lock(mutex_);
      // Threads stopped by this failure report kCancelled only later.
      if (first_failure_.ok()) first_failure_ = std::move(status);
      any_stop.request_stop();
    };
    // Declared after what the threads use, because they are joined at the end of this scope.
    std::vector<std::jthread> threads;
    end_with(Caught("reading rows", [&] {
      for (Reader& reader : readers) {
        threads.emplace_back([this, &reader, input, &any_stop, &end_with] {
          end_with(Caught("reading rows", [&] { return ReadAll(reader, *input, any_stop.get_token()); }));
        });
      }
      return Status::Ok();
    }));
  }
  if (!first_failure_.ok()) return first_failure_;
  MR_TRY(bad_lines_->CheckShare());
  input->Sort();
  return Stats(readers);
}

Status RowLoader::ReadAll(Reader& reader, InputChannel& input, const std::stop_token& stop) {
  for (;;) {
    MR_ASSIGN(const bool got, reader.lines.NextBlock(reader.number, reader.feed.feed(), stop));
    if (!got) return Status::Ok();
    const auto start = std::chrono::steady_clock::now();
    const Status parsed = ParseBlock(reader, input);
    reader.parse_seconds += SecondsSince(start);
    MR_TRY(parsed);
    // Lines can fail individually; stop requests are checked once per block.
    if (stop.stop_requested()) return Cancelled("stopped while loading into memory");
  }
}

Status RowLoader::ParseBlock(Reader& reader, InputChannel& input) {
  const LineBlock& block = reader.lines.block();
  reader.sink.BeginBlock(block.file);
  if (options_.thinning.is_active()) reader.feed.BeginFile(reader.lines.file(), block.file);
  const auto on_bad = [](const LineError&) { return Status::Ok(); };
  while (!reader.lines.at_end()) {
    reader.sink.set_line(reader.lines.number());
    reader.feed.set_line(reader.lines.number());
    MR_TRY(reader.lines.Read(on_bad, reader.feed, reader.sink).status());
  }
  const std::vector<RowHandle>& handles = reader.sink.handles();
  reader.rows += static_cast<int64_t>(handles.size());
  input.Put({block.file, block.first_line, handles});
  bad_lines_->AddLines(static_cast<int64_t>(block.lines));
  return Status::Ok();
}

PassStats RowLoader::Stats(const std::vector<Reader>& readers) const {
  PassStats stats = StatsOfFiles(blocks_, *bad_lines_);
  for (const Reader& reader : readers) {
    stats.rows += reader.rows;
    reader.lines.AddTo(*reader.feed.feed(), &stats);
    if (reader.feed.left_out() > 0) stats.counters["downsampled"] += reader.feed.left_out();
    stats.stage_seconds["parse"] += reader.parse_seconds;
    reader.feed.counters().AddTo(stats.counters);
  }
  return stats;
}

}  // namespace millrace
