#include "dataset/row_loader.h"

#include <chrono>
#include <thread>

#include "core/caught.h"
#include "core/elapsed.h"
#include "datafeed/row_sink.h"
#include "dataset/feed_rows.h"
#include "dataset/line_input.h"

namespace millrace {
struct RowLoader::Reader {
  Reader(int lane, std::unique_ptr<DataFeed> line_feed, const RowLoader& loader, PackedRows* packed)
      : number(lane),
        feed(std::move(line_feed), *loader.schema_, loader.options_.thinning),
        lines(loader.blocks_, *loader.bad_lines_),
        sink(*loader.layout_, packed) {}

  int number;
  FeedRows feed;
  LineReader lines;
  RowSink sink;
  LineBlock block;
  int64_t rows = 0;
  int64_t sampled_out = 0;
  int64_t held = 0;
  double parse_seconds = 0;
};

RowLoader::RowLoader(const InputOpener& opener, const std::vector<std::string>& files, const SlotSchema& schema,
                     const RowLayout& layout, BadLines& bad_lines, const Options& options)
    : schema_(&schema),
      files_(&files),
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
    MR_ASSIGN(const bool got, blocks_.Next(reader.number, reader.block, stop));
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
  const LineBlock& block = reader.block;
  reader.sink.BeginBlock(block.file);
  MR_TRY(BeginBlock(block, blocks_, reader.feed.feed()));
  if (options_.thinning.is_active()) reader.feed.BeginFile((*files_)[block.file], block.file);
  const LineShare& held = options_.held;
  const uint64_t held_seed = held.is_active() ? held.SeedOf((*files_)[block.file], block.file) : 0;
  const bool samples = options_.sample_rate < 1;
  const uint64_t sample_seed = samples ? options_.sample.SeedOf((*files_)[block.file], block.file) : 0;
  uint64_t line_number = block.first_line;
  for (std::string_view text = block.text(); !text.empty(); ++line_number) {
    const std::string_view line = block.TakeLine(&text);
    const bool is_header = line_number == 1 && block.header != nullptr;
    if (held.is_active() && !is_header && !held.HandsOut(held_seed, line_number)) {
      ++reader.held;
      continue;
    }
    if (samples && LineDraw::NumberOf(sample_seed, line_number) >= options_.sample_rate) {
      ++reader.sampled_out;
      continue;
    }
    reader.sink.set_line(line_number);
    reader.feed.set_line(line_number);
    const auto on_bad = [](const LineError&) { return Status::Ok(); };
    MR_TRY(reader.lines.Read(block, line_number, line, on_bad, reader.feed, reader.sink).status());
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
    reader.lines.AddNames(*reader.feed.feed(), &stats);
    if (reader.feed.left_out() > 0) stats.counters["downsampled"] += reader.feed.left_out();
    if (reader.held > 0) stats.counters["of_other_sets"] += reader.held;
    if (reader.sampled_out > 0) stats.counters["sampled_out"] += reader.sampled_out;
    stats.stage_seconds["parse"] += reader.parse_seconds;
    reader.feed.counters().AddTo(stats.counters);
  }
  return stats;
}

}  // namespace millrace
