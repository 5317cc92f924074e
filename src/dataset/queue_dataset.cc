#include "dataset/queue_dataset.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>

#include "config/feed_names.h"
#include "data_feed.pb.h"
#include "dataset/line_input.h"
#include "dataset/queue_pass.h"

namespace millrace {

struct QueueDataset::Impl {
  Impl(const DataFeedDesc& feed_desc, SlotSchema slot_schema, std::vector<std::string> file_list,
       const DataFeedFactory& feed_factory, QueueDatasetOptions dataset_options)
      : desc(feed_desc),
        schema(std::move(slot_schema)),
        files(std::move(file_list)),
        feeds(feed_factory),
        options(std::move(dataset_options)),
        pool(schema) {}

  const DataFeedDesc desc;
  const SlotSchema schema;
  const std::vector<std::string> files;
  const DataFeedFactory feeds;
  const QueueDatasetOptions options;
  LineCut cut;  ///< of the feeds
  std::unique_ptr<InputOpener> opener;
  BatchPool pool;
  BadLinePlaces places;
  std::unique_ptr<FileQueue> shared_files;  ///< of the pass
  std::optional<QueuePass> pass;

  std::string class_name() const { return FeedNameFor("QueueDataset", desc); }
  Result<std::unique_ptr<BadLines>> MakeBadLines() const {
    return BadLines::Create(desc.bad_lines(), options.output_dir, files, options.stop);
  }
};

QueueDataset::QueueDataset(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
QueueDataset::~QueueDataset() = default;

Result<std::unique_ptr<QueueDataset>> QueueDataset::Create(const DataFeedDesc& desc, std::vector<std::string> files,
                                                           const DataFeedFactory& feeds, QueueDatasetOptions options) {
  MR_TRY(CheckLineInput(desc));
  if (desc.input_type() != 0) {
    return InvalidConfig("data_desc.input_type: lines that are whole batches need an InMemoryDataset");
  }
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(desc));
  auto impl = std::make_unique<Impl>(desc, std::move(schema), std::move(files), feeds, std::move(options));
  MR_TRY(feeds.Create(impl->class_name(), impl->schema, desc).status());
  MR_TRY(impl->MakeBadLines().status());  // detects an unwritable path before reading anything
  MR_ASSIGN(impl->cut, feeds.CutOf(impl->class_name(), impl->schema, impl->desc));
  MR_ASSIGN(impl->opener, InputOpener::Create(desc, impl->files, impl->options.stop, impl->cut));
  return std::unique_ptr<QueueDataset>(new QueueDataset(std::move(impl)));
}

Status QueueDataset::BeginPass(const PassOptions& options) {
  Impl& impl = *impl_;
  impl.pass.reset();
  QueuePassOptions pass;
  // A single reader preserves the order of files and lines; it reads ahead by the channel's capacity.
  const int threads = impl.desc.has_thread_num() ? impl.desc.thread_num() : impl.options.threads;
  pass.readers = options.ordered ? 1 : std::max(threads, 1);
  if (!impl.options.reads_ahead) pass.readers = 0;
  pass.workers = std::max(options.workers, 1);
  pass.batch_size = impl.desc.batch_size();
  pass.prefetch_batches =
      static_cast<size_t>(impl.options.prefetch_batches > 0 ? impl.options.prefetch_batches : 2 * pass.workers);
  pass.retries = impl.desc.pipe_retries();
  pass.drop_last = impl.desc.drop_last();
  pass.cut = impl.cut;
  pass.spans = impl.options.spans;
  pass.traced_as = impl.options.traced_as;
  impl.shared_files = impl.options.shared_files ? impl.options.shared_files(options.pass) : nullptr;
  pass.shared_files = impl.shared_files.get();
  pass.held = impl.options.held;
  MR_ASSIGN(pass.thinning, LabelThinning::Create(impl.options.thinned, impl.schema));
  std::vector<std::unique_ptr<DataFeed>> feeds;
  VLOG(3) << "CreateReaders: thread num: " << threads << ", data feed class name: " << impl.class_name();
  VLOG(3) << "readers num: " << pass.readers << ", batches that the channel holds: " << pass.prefetch_batches;
  for (int i = 0; i < std::max(pass.readers, 1); ++i) {
    MR_ASSIGN(std::unique_ptr<DataFeed> feed, impl.feeds.Create(impl.class_name(), impl.schema, impl.desc));
    feeds.push_back(std::move(feed));
  }
  MR_ASSIGN(std::unique_ptr<BadLines> bad_lines, impl.MakeBadLines());
  const std::map<std::string, int64_t> earlier =
      options.bad_lines != nullptr ? *options.bad_lines : std::map<std::string, int64_t>();
  const ConsumedRanges trained = options.trained != nullptr ? *options.trained : ConsumedRanges();
  bad_lines->CountEarlier(earlier, static_cast<int64_t>(trained.TotalPositions()));
  impl.places.Begin(earlier);
  impl.pass.emplace(pass, *impl.opener, impl.files, impl.pool, std::move(feeds), std::move(bad_lines), trained,
                    impl.places);
  return Status::Ok();
}

BatchSource& QueueDataset::source(int worker) { return impl_->pass->source(worker); }

Result<PassStats> QueueDataset::EndPass() {
  if (!impl_->pass) return Internal("EndPass without BeginPass");
  PassStats stats = impl_->pass->Finish();
  impl_->pass.reset();
  return stats;
}

bool QueueDataset::is_paused() const { return impl_->pass && impl_->pass->is_paused(); }

const std::vector<std::string>& QueueDataset::files() const { return impl_->files; }
const SlotSchema& QueueDataset::schema() const { return impl_->schema; }

std::map<std::string, int64_t> QueueDataset::BadLinesWithin(const ConsumedRanges& trained) const {
  return impl_->places.Within(trained);
}

}  // namespace millrace
