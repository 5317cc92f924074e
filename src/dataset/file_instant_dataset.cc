#include "dataset/file_instant_dataset.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>

#include "config/feed_names.h"
#include "data_feed.pb.h"
#include "datafeed/input_opener.h"
#include "dataset/instant_cursor.h"

namespace millrace {
namespace {

/// Copies rows from the cursor for one worker.
class InstantSource final : public BatchSource {
 public:
  InstantSource(const InstantFeed& feed, InstantCursor& cursor, BatchPool& pool)
      : feed_(&feed), cursor_(&cursor), pool_(&pool) {}

  Result<BatchPtr> Next(std::stop_token stop) override {
    if (stop.stop_requested()) return Cancelled("stopped between batches");
    MR_ASSIGN(const bool got, cursor_->Next(&dealt_));
    if (!got) return BatchPtr();
    const auto start = std::chrono::steady_clock::now();
    BatchPtr batch = pool_->Take();
    const int64_t zeros_dropped = feed_->CopyRows(dealt_.file->bytes(), dealt_.rows, batch.get());
    zeros_dropped_.fetch_add(zeros_dropped, std::memory_order_relaxed);
    const auto count = static_cast<uint64_t>(dealt_.rows.count);
    for (uint64_t i = 1; i <= count; ++i) {
      batch->mutable_origins().push_back({dealt_.file_number, dealt_.first_row + i});
    }
    batch->mutable_spans().push_back({dealt_.file_number, dealt_.first_row, dealt_.first_row + count});
    const auto took = std::chrono::steady_clock::now() - start;
    nanoseconds_.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count(),
                           std::memory_order_relaxed);
    return batch;
  }

  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)); }
  int64_t zeros_dropped() const { return zeros_dropped_.load(std::memory_order_relaxed); }

 private:
  const InstantFeed* feed_;
  InstantCursor* cursor_;
  BatchPool* pool_;
  InstantCursor::Dealt dealt_;
  std::atomic<int64_t> nanoseconds_{0};
  std::atomic<int64_t> zeros_dropped_{0};
};

/// Mapping needs local regular files; opening a named pipe would block until it has a writer.
Status CheckPlainFiles(const std::vector<std::string>& files, const std::stop_token& stop) {
  MR_TRY(InputOpener::Create(DataFeedDesc(), files, stop).status());
  for (const std::string& file : files) {
    if (stop.stop_requested()) return Cancelled("stopped while looking at the input files");
    std::error_code error;
    if (std::filesystem::is_regular_file(file, error)) continue;
    return InvalidConfig("\"" + file +
                         "\" is no plain file of this machine; a FileInstantDataset maps its files into " +
                         "memory, so copy it first");
  }
  return Status::Ok();
}

/// Rejects settings that apply only to lines of text.
Status RefuseTextSettings(const DataFeedDesc& desc) {
  const auto refuse = [](const std::string& field, const std::string& why) {
    return InvalidConfig("data_desc." + field + " has no meaning for a FileInstantDataset: " + why);
  };
  if (!desc.pipe_command().empty() && desc.pipe_command() != "cat") {
    return refuse("pipe_command", "its files are binary; `inspect convert` runs the command once and writes them");
  }
  if (desc.parse_ins_id() || desc.parse_content()) {
    return refuse(desc.parse_ins_id() ? "parse_ins_id" : "parse_content", "binary rows hold no texts");
  }
  if (desc.parse_logkey()) return refuse("parse_logkey", "binary rows hold no texts");
  if (desc.input_type() != 0) return refuse("input_type", "a row is an example");
  if (desc.bad_lines().action() != BadLinePolicy::FAIL) {
    return refuse("bad_lines", "behind a row that is wrong nothing says where the next one begins");
  }
  if (desc.non_finite() == DataFeedDesc::REJECT_NON_FINITE) {
    return refuse("non_finite", "values are taken as they are; reject them when converting");
  }
  return Status::Ok();
}

}  // namespace

struct FileInstantDataset::Impl {
  Impl(SlotSchema slot_schema, std::vector<std::string> file_list, const DataFeedDesc& desc)
      : schema(std::move(slot_schema)),
        files(std::move(file_list)),
        batch_size(desc.batch_size()),
        drop_last(desc.drop_last()),
        pool(schema) {}

  const SlotSchema schema;
  const std::vector<std::string> files;
  const int batch_size;
  const bool drop_last;
  std::unique_ptr<const InstantFeed> feed;
  BatchPool pool;
  FileStamps stamps;
  std::optional<InstantCursor> cursor;
  std::vector<std::unique_ptr<InstantSource>> sources;
};

FileInstantDataset::FileInstantDataset(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FileInstantDataset::~FileInstantDataset() = default;

Result<std::unique_ptr<FileInstantDataset>> FileInstantDataset::Create(const DataFeedDesc& desc,
                                                                       std::vector<std::string> files,
                                                                       const DataFeedFactory& feeds,
                                                                       const std::stop_token& stop) {
  if (desc.batch_size() <= 0) {
    return InvalidConfig("data_desc.batch_size must be positive, but is " + std::to_string(desc.batch_size()));
  }
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(desc));
  auto impl = std::make_unique<Impl>(std::move(schema), std::move(files), desc);
  MR_ASSIGN(impl->feed, feeds.CreateInstant(FeedNameFor("FileInstantDataset", desc), impl->schema, desc));
  MR_TRY(RefuseTextSettings(desc));
  MR_TRY(CheckPlainFiles(impl->files, stop));
  return std::unique_ptr<FileInstantDataset>(new FileInstantDataset(std::move(impl)));
}

Status FileInstantDataset::BeginPass(const PassOptions& options) {
  Impl& impl = *impl_;
  impl.sources.clear();
  impl.cursor.emplace(*impl.feed, impl.files, impl.stamps, impl.batch_size, impl.drop_last,
                      options.trained != nullptr ? *options.trained : ConsumedRanges());
  for (int i = 0; i < std::max(options.workers, 1); ++i) {
    impl.sources.push_back(std::make_unique<InstantSource>(*impl.feed, *impl.cursor, impl.pool));
  }
  return Status::Ok();
}

BatchSource& FileInstantDataset::source(int worker) { return *impl_->sources[static_cast<size_t>(worker)]; }

Result<PassStats> FileInstantDataset::EndPass() {
  Impl& impl = *impl_;
  if (!impl.cursor) return Internal("EndPass without BeginPass");
  PassStats stats = impl.cursor->stats();
  int64_t zeros_dropped = 0;
  for (const std::unique_ptr<InstantSource>& source : impl.sources) {
    stats.stage_seconds["copy"] += source->seconds();
    zeros_dropped += source->zeros_dropped();
  }
  if (zeros_dropped > 0) stats.counters["zero_dropped"] = zeros_dropped;
  impl.sources.clear();
  impl.cursor.reset();
  return stats;
}

const std::vector<std::string>& FileInstantDataset::files() const { return impl_->files; }
const SlotSchema& FileInstantDataset::schema() const { return impl_->schema; }

}  // namespace millrace
