#include "dataset/in_memory_dataset.h"

#include <glog/logging.h>
#include <malloc.h>

#include <atomic>
#include <optional>
#include <thread>

#include "core/rng.h"
#include "data_feed.pb.h"
#include "datafeed/bad_lines.h"
#include "dataset/in_memory_source.h"
#include "dataset/row_loader.h"

namespace millrace {

struct InMemoryDataset::Impl {
  Impl(const DataFeedDesc& feed_desc, SlotSchema slot_schema, std::vector<std::string> file_list,
       InMemoryDatasetOptions dataset_options)
      : desc(feed_desc),
        schema(std::move(slot_schema)),
        files(std::move(file_list)),
        options(std::move(dataset_options)),
        line_options(MultiSlotOptions::FromDesc(desc, FeedClass::kInMemory)),
        layout(schema, line_options),
        pool(schema) {}

  Result<PassStats> Load(std::stop_token stop);

  const DataFeedDesc desc;
  const SlotSchema schema;
  const std::vector<std::string> files;
  const InMemoryDatasetOptions options;
  const MultiSlotOptions line_options;
  const RowLayout layout;
  std::unique_ptr<InputOpener> opener;

  PackedRows rows;
  std::vector<RowHandle> loaded;    ///< the input channel: (file, line) order
  std::vector<RowHandle> shuffled;  ///< the order of passes after a shuffle; empty before
  bool is_loaded = false;

  BatchPool pool;
  std::optional<RowChannels> channels;
  std::optional<InMemoryPass> pass;
  std::vector<std::unique_ptr<InMemorySource>> sources;

  std::optional<Result<PassStats>> preload_result;  ///< written by the preloading thread, read after joining it
  std::jthread preload;                             ///< last, so that it ends before what it uses
};

Result<PassStats> InMemoryDataset::Impl::Load(std::stop_token stop) {
  if (is_loaded) {
    return AlreadyExists("the dataset is in memory already (" + std::to_string(loaded.size()) +
                         " rows); call ReleaseMemory before loading again");
  }
  MR_ASSIGN(
      const std::unique_ptr<BadLines> bad_lines,
      BadLines::Create(desc.bad_lines(), options.output_dir.empty() ? "" : options.output_dir + "/bad_lines.txt"));
  RowLoader::Options load;
  load.threads = std::max(desc.has_thread_num() ? desc.thread_num() : options.threads, 1);
  load.retries = desc.pipe_retries();
  load.lines = line_options;
  RowLoader loader(*opener, files, schema, layout, *bad_lines, load);
  Result<PassStats> stats = loader.Load(&rows, &loaded, std::move(stop));
  is_loaded = stats.ok();
  if (!stats.ok()) rows.Release();
  return stats;
}

InMemoryDataset::InMemoryDataset(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
InMemoryDataset::~InMemoryDataset() = default;

Result<std::unique_ptr<InMemoryDataset>> InMemoryDataset::Create(const DataFeedDesc& desc,
                                                                 std::vector<std::string> files,
                                                                 InMemoryDatasetOptions options) {
  // For the whole process: blocks of a MiB and more come from the system and go back to it when they are freed. By
  // itself the allocator learns to keep such blocks, and ReleaseMemory would release nothing.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  if (!desc.name().empty() && desc.name() != "MultiSlotInMemoryDataFeed" &&
      desc.name() != "SlotRecordInMemoryDataFeed") {
    return InvalidConfig(
        "data_desc.name: an InMemoryDataset reads with MultiSlotInMemoryDataFeed or SlotRecordInMemoryDataFeed, not "
        "with \"" +
        desc.name() + "\"; zeros: KEEP keeps zeros as MultiSlotDataFeed does");
  }
  if (desc.batch_size() <= 0) {
    return InvalidConfig("data_desc.batch_size must be positive, but is " + std::to_string(desc.batch_size()));
  }
  if (desc.pipe_retries() < 0) {
    return InvalidConfig("data_desc.pipe_retries must not be negative, but is " + std::to_string(desc.pipe_retries()));
  }
  if (desc.has_thread_num() && desc.thread_num() <= 0) {
    return InvalidConfig("data_desc.thread_num must be positive, but is " + std::to_string(desc.thread_num()));
  }
  if (options.queue_num < 0) {
    return InvalidConfig("dataset.queue_num must not be negative, but is " + std::to_string(options.queue_num));
  }
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(desc));
  auto impl = std::make_unique<Impl>(desc, std::move(schema), std::move(files), std::move(options));
  MR_ASSIGN(impl->opener, InputOpener::Create(desc, impl->files));
  return std::unique_ptr<InMemoryDataset>(new InMemoryDataset(std::move(impl)));
}

Status InMemoryDataset::BeginPass(const PassOptions& options) {
  Impl& impl = *impl_;
  if (impl.preload.joinable()) MR_TRY(WaitPreloadDone().status());
  if (!impl.is_loaded) {
    return InvalidConfig("the InMemoryDataset holds no rows: call LoadIntoMemory (or PreloadIntoMemory) before a pass");
  }
  CHECK(!impl.pass) << "BeginPass within a pass";
  if (impl.options.local_shuffle) {
    MR_TRY(LocalShuffle(Mix64(options.seed, static_cast<uint64_t>(options.pass))));
  }
  const int workers = std::max(options.workers, 1);
  const int queue_num = impl.options.queue_num > 0 ? impl.options.queue_num : workers;
  const auto batch_size = static_cast<uint64_t>(impl.desc.batch_size());
  PassOrder numbers(impl.loaded.size(), options.trained);
  if (!impl.channels || impl.channels->queue_num() != queue_num) {
    impl.channels.emplace(queue_num, (impl.loaded.size() + batch_size - 1) / batch_size);
  }
  impl.channels->Deal(numbers.size(), batch_size, impl.desc.drop_last());
  impl.pass.emplace(InMemoryPass{&impl.rows, &impl.layout, impl.shuffled.empty() ? &impl.loaded : &impl.shuffled,
                                 std::move(numbers), &*impl.channels, &impl.pool});
  for (int i = 0; i < workers; ++i) {
    const RowChannels::Cursor cursor{static_cast<size_t>(i % queue_num), static_cast<size_t>(workers)};
    impl.sources.push_back(std::make_unique<InMemorySource>(*impl.pass, impl.schema, cursor));
  }
  return Status::Ok();
}

BatchSource& InMemoryDataset::source(int worker) { return *impl_->sources[static_cast<size_t>(worker)]; }

Result<PassStats> InMemoryDataset::EndPass() {
  Impl& impl = *impl_;
  if (!impl.pass) return Internal("EndPass without BeginPass");
  PassStats stats;
  for (const std::unique_ptr<InMemorySource>& source : impl.sources) {
    stats.rows += source->rows();
    stats.stage_seconds["assemble"] += source->seconds();
  }
  impl.sources.clear();
  impl.pass.reset();
  impl.channels->Swap();
  return stats;
}

const std::vector<std::string>& InMemoryDataset::files() const { return impl_->files; }
const SlotSchema& InMemoryDataset::schema() const { return impl_->schema; }

Result<PassStats> InMemoryDataset::LoadIntoMemory(std::stop_token stop) {
  if (impl_->preload.joinable()) {
    return AlreadyExists("the dataset is being loaded by PreloadIntoMemory; call WaitPreloadDone instead");
  }
  return impl_->Load(std::move(stop));
}

Status InMemoryDataset::PreloadIntoMemory(std::stop_token stop) {
  Impl& impl = *impl_;
  if (impl.preload.joinable()) return AlreadyExists("a preload is under way; call WaitPreloadDone first");
  if (impl.is_loaded) return AlreadyExists("the dataset is in memory already; call ReleaseMemory before loading again");
  impl.preload = std::jthread([&impl, stop = std::move(stop)](std::stop_token own_stop) {
    std::stop_source any_stop;
    const auto request = [&any_stop] { any_stop.request_stop(); };
    const std::stop_callback on_stop(stop, request);
    const std::stop_callback on_own_stop(std::move(own_stop), request);
    impl.preload_result = impl.Load(any_stop.get_token());
  });
  return Status::Ok();
}

Result<PassStats> InMemoryDataset::WaitPreloadDone() {
  Impl& impl = *impl_;
  if (!impl.preload.joinable()) return InvalidConfig("WaitPreloadDone without PreloadIntoMemory");
  impl.preload.join();
  impl.preload = std::jthread();
  return *std::exchange(impl.preload_result, std::nullopt);
}

Status InMemoryDataset::LocalShuffle(uint64_t seed) {
  Impl& impl = *impl_;
  CHECK(!impl.pass) << "LocalShuffle within a pass";
  if (impl.preload.joinable()) MR_TRY(WaitPreloadDone().status());
  if (!impl.is_loaded) return InvalidConfig("the InMemoryDataset holds no rows to shuffle: call LoadIntoMemory before");
  impl.shuffled = impl.loaded;
  Rng rng(seed);
  for (size_t i = impl.shuffled.size(); i > 1; --i) std::swap(impl.shuffled[i - 1], impl.shuffled[rng.Below(i)]);
  return Status::Ok();
}

void InMemoryDataset::ReleaseMemory() {
  Impl& impl = *impl_;
  CHECK(!impl.pass) << "ReleaseMemory within a pass";
  if (impl.preload.joinable()) {
    impl.preload.request_stop();
    impl.preload.join();
    impl.preload = std::jthread();
    impl.preload_result.reset();
  }
  impl.rows.Release();
  std::vector<RowHandle>().swap(impl.loaded);
  std::vector<RowHandle>().swap(impl.shuffled);
  impl.channels.reset();
  impl.is_loaded = false;
}

int64_t InMemoryDataset::MemoryDataSize() const { return static_cast<int64_t>(impl_->loaded.size()); }

int64_t InMemoryDataset::MemoryBytes() const {
  const size_t handles = impl_->loaded.capacity() + impl_->shuffled.capacity();
  return static_cast<int64_t>(impl_->rows.bytes() + handles * sizeof(RowHandle));
}

}  // namespace millrace
