#include "dataset/in_memory_dataset.h"

#include <glog/logging.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "config/feed_names.h"
#include "config/grouping.h"
#include "core/caught.h"
#include "core/edit_distance.h"
#include "core/numbers.h"
#include "core/shuffle.h"
#include "data_feed.pb.h"
#include "datafeed/bad_lines.h"
#include "dataset/in_memory_source.h"
#include "dataset/line_batch.h"
#include "dataset/line_input.h"
#include "dataset/merge_rows.h"
#include "dataset/page_views.h"
#include "dataset/row_loader.h"

namespace millrace {

namespace {

constexpr std::string_view kClass = "InMemoryDataset";

Status CheckRowOptions(const DataFeedDesc& desc, const InMemoryRows& rows) {
  const bool joins = std::find(rows.phases.begin(), rows.phases.end(), PassPhase::kJoin) != rows.phases.end();
  const auto refused = RefusedByGrouping(desc, {rows.merge_by_lineid, rows.enable_pv_merge, joins});
  if (!refused.empty()) return InvalidConfig(refused[0].field + ": " + refused[0].why);
  if (rows.merge_size < 0) {
    return InvalidConfig("dataset.merge_size must not be negative, but is " + std::to_string(rows.merge_size));
  }
  if (joins && desc.pv_batch_size() < 1) {
    return InvalidConfig("data_desc.pv_batch_size must be positive, but is " + std::to_string(desc.pv_batch_size()));
  }
  if (!(rows.sample_rate > 0 && rows.sample_rate <= 1)) {
    return InvalidConfig("dataset.sample_rate must be in (0, 1], but is " + ShortestNumber(rows.sample_rate));
  }
  return desc.input_type() == 0 ? Status::Ok() : LineBatchSchema(desc).status();
}

/// Names of examples, and lines that are batches, require a feed that packs them.
Status CheckFeed(const DataFeedDesc& desc, const Result<std::unique_ptr<DataFeed>>& feed) {
  const bool packs = feed.ok() && dynamic_cast<const PackingFeed*>(feed->get()) != nullptr;
  const bool has_texts = desc.parse_ins_id() || desc.parse_content() || desc.parse_logkey();
  if (!packs && (has_texts || desc.input_type() != 0)) {
    return InvalidConfig("data_desc.name: rows of \"" + desc.name() +
                         "\" have no names (parse_ins_id, parse_content, " +
                         "parse_logkey) in an InMemoryDataset, and its lines are no batches (input_type)");
  }
  return feed.status();
}

}  // namespace

struct InMemoryDataset::Impl {
  Impl(const DataFeedDesc& feed_desc, SlotSchema slot_schema, std::vector<std::string> file_list,
       InMemoryDatasetOptions dataset_options)
      : desc(feed_desc),
        load_desc(feed_desc),
        schema(std::move(slot_schema)),
        files(std::move(file_list)),
        row_files(files),
        options(std::move(dataset_options)),
        line_schema(desc.input_type() == 1 ? std::optional(LineBatchSchema(desc).value()) : std::nullopt),
        layout(row_schema(), MultiSlotOptions::FromDesc(desc)),
        phases(options.rows.phases),
        queue_num(options.queue_num),
        pool(schema) {}

  Result<std::unique_ptr<DataFeed>> MakeFeed() const {
    return options.feeds.Create(FeedNameFor(kClass, load_desc), row_schema(), load_desc);
  }
  Result<PassStats> Load(std::stop_token stop);
  /// Moves the rows of the input channel, if any, to the order of passes.
  void TakeInput() {
    if (input.rows() > 0) order = input.TakeAll();
  }
  /// Rows in (file, line) order.
  std::vector<RowHandle> AsLoaded() const {
    if (!loaded.empty()) return loaded;
    return input.rows() > 0 ? input.Copy() : order;
  }
  /// Frees every row.
  void Release();
  /// Merges and groups rows after all are loaded.
  void GroupRows(PassStats* stats);
  PassPhase PhaseOf(int64_t number) const {
    return phases.empty() ? PassPhase::kUpdate : phases[static_cast<size_t>(number) % phases.size()];
  }
  /// The schema for parsing lines.
  const SlotSchema& row_schema() const { return line_schema ? *line_schema : schema; }

  DataFeedDesc desc;  ///< batch settings of the next pass; other fields are those of the load
  /// The settings for parsing, used by preload threads while `desc` gets new batch settings.
  const DataFeedDesc load_desc;
  const SlotSchema schema;
  const std::vector<std::string> files;
  std::vector<std::string> row_files;  ///< files of the rows' origins: `files`, or those of TakeRows
  const InMemoryDatasetOptions options;
  const std::optional<SlotSchema> line_schema;  ///< with input_type 1
  const RowLayout layout;
  LineCut cut;                          ///< of the feed
  std::unique_ptr<InputOpener> opener;  ///< null without files

  PackedRows rows;
  InputChannel input;
  std::vector<RowHandle> order;  ///< for passes: the rows taken from the input
  std::vector<RowHandle>
      loaded;                ///< (file, line) order, used from the first shuffle; before that, see `input` or `order`
  PageViews views;           ///< with enable_pv_merge
  PageViews shuffled_views;  ///< after a shuffle
  SlotDonors donors;
  std::atomic<bool> is_loaded = false;  ///< like row_count, set by the loading thread
  std::atomic<int64_t> row_count = 0;

  std::vector<PassPhase> phases;
  int queue_num;
  BatchPool pool;
  std::optional<RowChannels> channels;
  std::optional<InMemoryPass> pass;
  uint64_t rows_dropped = 0;  ///< of the pass, by drop_last
  std::vector<std::unique_ptr<InMemorySource>> sources;

  std::optional<Result<PassStats>> preload_result;  ///< written by the preloading thread, read after joining it
  std::jthread preload;                             ///< last member: ends before what it uses
};

Result<PassStats> InMemoryDataset::Impl::Load(std::stop_token stop) {
  if (is_loaded) {
    return AlreadyExists("the dataset is in memory already (" + std::to_string(row_count) +
                         " rows); call ReleaseMemory before loading again");
  }
  if (opener == nullptr) {
    is_loaded = true;
    return PassStats();
  }
  opener->ForgetFiles();
  MR_ASSIGN(const std::unique_ptr<BadLines> bad_lines,
            BadLines::Create(load_desc.bad_lines(), options.output_dir, files, options.stop));
  RowLoader::Options load;
  load.threads = std::max(load_desc.has_thread_num() ? load_desc.thread_num() : options.threads, 1);
  load.retries = load_desc.pipe_retries();
  load.rules.held = options.rows.held;
  if (options.rows.sample_rate < 1) {
    load.rules.sample = LineShare(options.rows.sample, 0, options.rows.sample_rate, true);
  }
  MR_ASSIGN(load.thinning, LabelThinning::Create(options.rows.thinned, row_schema()));
  load.cut = cut;
  load.make_feed = [this] { return MakeFeed(); };
  VLOG(3) << "CreateReaders: thread num: " << load.threads
          << ", data feed class name: " << FeedNameFor(kClass, load_desc);
  RowLoader loader(*opener, files, row_schema(), layout, *bad_lines, load);
  Result<PassStats> stats = Caught("loading into memory", [&]() -> Result<PassStats> {
    MR_ASSIGN(PassStats read, loader.Load(&rows, &input, std::move(stop)));
    if (!options.rows.are_exchanged) GroupRows(&read);
    return read;
  });
  VLOG(3) << "readers num: " << load.threads << ", rows of the input channel: " << input.rows();
  if (stats.ok()) {
    row_count = input.rows();
    is_loaded = true;
  } else {
    Release();
  }
  return stats;
}

void InMemoryDataset::Impl::GroupRows(PassStats* stats) {
  if (!options.rows.merge_by_lineid && !options.rows.enable_pv_merge) return;
  std::vector<RowHandle> handles = input.TakeAll();
  if (options.rows.merge_by_lineid) {
    const MergeOptions merge{options.rows.merge_size, load_desc.zeros() == DataFeedDesc::DROP};
    const size_t lines = handles.size();
    MergeRowsByName(schema, layout, row_files, merge, &rows, &handles, stats);
    stats->rows -= static_cast<int64_t>(lines - handles.size());
  }
  if (options.rows.enable_pv_merge) {
    views = GroupPageViews(layout, rows, handles);
    stats->counters["page_views"] += static_cast<int64_t>(views.size());
  }
  input.Put({.rows = std::move(handles)});
}

void InMemoryDataset::Impl::Release() {
  rows.Release();
  input.TakeAll();
  std::vector<RowHandle>().swap(order);
  std::vector<RowHandle>().swap(loaded);
  views = {};
  shuffled_views = {};
  donors = {};
  channels.reset();
  is_loaded = false;
  row_count = 0;
}

InMemoryDataset::InMemoryDataset(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
InMemoryDataset::~InMemoryDataset() = default;

Result<std::unique_ptr<InMemoryDataset>> InMemoryDataset::Create(const DataFeedDesc& desc,
                                                                 std::vector<std::string> files,
                                                                 InMemoryDatasetOptions options) {
  // For the whole process: allocate blocks of 1 MiB and more with mmap, so that freeing them returns memory to the
  // system. By default the allocator adapts and keeps such blocks, and ReleaseMemory would release nothing. Only once:
  // with a sanitizer's allocator, this is the first call of glibc's, which is not thread-safe.
  [[maybe_unused]] static const int kSet = mallopt(M_MMAP_THRESHOLD, 1 << 20);
  const std::string name = FeedNameFor(kClass, desc);
  MR_TRY(options.feeds.CheckName(name));
  if (const std::string_view owner = DatasetOfFeed(name); !owner.empty() && owner != kClass) {
    return InvalidConfig(
        "data_desc.name: an InMemoryDataset reads with MultiSlotInMemoryDataFeed or SlotRecordInMemoryDataFeed, not "
        "with \"" +
        name + "\"");
  }
  MR_TRY(CheckLineInput(desc));
  if (options.queue_num < 0) {
    return InvalidConfig("dataset.queue_num must not be negative, but is " + std::to_string(options.queue_num));
  }
  MR_TRY(CheckRowOptions(desc, options.rows));
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(desc));
  DataFeedDesc resolved = desc;
  ResolveZeros(kClass, &resolved);
  auto impl = std::make_unique<Impl>(resolved, std::move(schema), std::move(files), std::move(options));
  MR_TRY(CheckFeed(desc, impl->MakeFeed()));
  MR_ASSIGN(impl->cut, impl->options.feeds.CutOf(name, impl->schema, impl->load_desc));
  // A dataset without files gets rows of others.
  if (!impl->files.empty() || !impl->options.rows.are_exchanged) {
    MR_ASSIGN(impl->opener, InputOpener::Create(desc, impl->files, impl->options.stop, impl->cut));
  }
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
  const bool are_new = impl.input.rows() > 0;
  impl.TakeInput();
  const int workers = std::max(options.workers, 1);
  const int queue_num = impl.queue_num > 0 ? impl.queue_num : workers;
  PassOrder numbers(impl.order.size(), options.trained);
  const bool joins = impl.PhaseOf(options.pass) == PassPhase::kJoin;
  const PageViews& views = impl.shuffled_views.size() > 0 ? impl.shuffled_views : impl.views;
  const std::vector<RowBlock> blocks =
      joins ? PageViewBlocks(views, options.trained, impl.desc.pv_batch_size(), impl.desc.drop_last())
            : CutIntoBlocks(numbers.size(), static_cast<uint64_t>(impl.desc.batch_size()), impl.desc.drop_last());
  if (!impl.channels || impl.channels->queue_num() != queue_num || impl.channels->capacity() < blocks.size()) {
    impl.channels.emplace(queue_num, blocks.size());
  }
  impl.rows_dropped = numbers.size() - (blocks.empty() ? 0 : blocks.back().end);
  const bool are_carried = impl.channels->Begin(blocks);
  VLOG(3) << "rows of the pass: " << numbers.size() << ", batches: " << blocks.size()
          << ", output channels: " << queue_num
          << (are_new       ? ", filled from the input channel"
              : are_carried ? ", which the swap has filled"
                            : ", which were filled anew");
  InMemoryPass& pass = impl.pass.emplace();
  pass.rows = &impl.rows;
  pass.layout = &impl.layout;
  pass.order = joins ? &views.order : &impl.order;
  pass.donors = &impl.donors;
  pass.line_schema = impl.line_schema ? &*impl.line_schema : nullptr;
  pass.files = &impl.row_files;
  pass.numbers = std::move(numbers);
  pass.channels = &*impl.channels;
  pass.pool = &impl.pool;
  for (int i = 0; i < workers; ++i) {
    impl.sources.push_back(
        std::make_unique<InMemorySource>(*impl.pass, impl.schema, impl.channels->CursorOf(i, workers)));
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
  if (impl.rows_dropped > 0) stats.counters["drop_last"] = static_cast<int64_t>(impl.rows_dropped);
  impl.sources.clear();
  impl.pass.reset();
  impl.channels->Swap();
  VLOG(3) << "output and consume channels swapped";
  return stats;
}

const std::vector<std::string>& InMemoryDataset::files() const { return impl_->row_files; }
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
  return Caught("loading into memory", [&impl, &stop] {
    impl.preload = std::jthread([&impl, stop = std::move(stop)](std::stop_token own_stop) {
      impl.preload_result = Caught("loading into memory", [&] {
        std::stop_source any_stop;
        const auto request = [&any_stop] { any_stop.request_stop(); };
        const std::stop_callback on_stop(stop, request);
        const std::stop_callback on_own_stop(std::move(own_stop), request);
        return impl.Load(any_stop.get_token());
      });
    });
    return Status::Ok();
  });
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
  impl.TakeInput();
  if (impl.loaded.empty()) {
    impl.loaded = impl.order;
  } else {
    impl.order = impl.loaded;
  }
  Shuffle(impl.order, seed);
  if (impl.channels) impl.channels->Clear();
  impl.input.Put({.rows = std::exchange(impl.order, {})});
  if (impl.views.size() > 0) impl.shuffled_views = ShufflePageViews(impl.views, seed);
  return Status::Ok();
}

Result<InMemoryDataset::Rows> InMemoryDataset::LoadedRows() {
  Impl& impl = *impl_;
  if (impl.preload.joinable()) MR_TRY(WaitPreloadDone().status());
  if (!impl.is_loaded) return InvalidConfig("the InMemoryDataset holds no rows: call LoadIntoMemory before");
  return Rows{&impl.rows, &impl.layout, impl.AsLoaded()};
}

void InMemoryDataset::TakeRows(PackedRows* packed, std::vector<RowHandle> order, const std::vector<std::string>& files,
                               std::map<std::string, int64_t>* counters) {
  Impl& impl = *impl_;
  CHECK(!impl.pass) << "TakeRows within a pass";
  impl.rows.Swap(*packed);
  impl.input.TakeAll();
  impl.order = {};
  impl.loaded = {};
  impl.shuffled_views = {};
  impl.donors = {};
  impl.channels.reset();
  impl.row_files = files;
  impl.input.Put({.rows = std::move(order)});
  PassStats grouped;
  impl.GroupRows(&grouped);
  for (const auto& [kind, count] : grouped.counters) (*counters)[kind] += count;
  impl.row_count = impl.input.rows();
  impl.is_loaded = true;
}

Status InMemoryDataset::SlotsShuffle(const std::vector<std::string>& slots, uint64_t seed, int64_t candidate_size) {
  Impl& impl = *impl_;
  CHECK(!impl.pass) << "SlotsShuffle within a pass";
  impl.donors = {};
  if (slots.empty()) return Status::Ok();
  if (impl.preload.joinable()) MR_TRY(WaitPreloadDone().status());
  if (!impl.is_loaded) return InvalidConfig("the InMemoryDataset holds no rows to shuffle: call LoadIntoMemory before");
  if (impl.line_schema) return InvalidConfig("slots of lines that are whole batches (input_type 1) are not shuffled");
  std::vector<std::string_view> known;
  for (const SlotSpec& slot : impl.schema.used()) known.push_back(slot.name);
  SlotDonors donors;
  donors.slots.resize(known.size());
  donors.seed = seed;
  for (const std::string& name : slots) {
    const SlotId slot = impl.schema.Find(name);
    if (slot < 0) return InvalidConfig("there is no used slot \"" + name + "\" to shuffle" + DidYouMean(name, known));
    donors.slots[static_cast<size_t>(slot)] = true;
  }
  donors.candidates = impl.AsLoaded();
  if (candidate_size > 0 && static_cast<size_t>(candidate_size) < donors.candidates.size()) {
    Shuffle(donors.candidates, seed);
    donors.candidates.resize(static_cast<size_t>(candidate_size));
  }
  if (!donors.candidates.empty()) impl.donors = std::move(donors);
  return Status::Ok();
}

Status InMemoryDataset::SetPhases(std::vector<PassPhase> phases) {
  InMemoryRows rows = impl_->options.rows;
  rows.phases = phases;
  MR_TRY(CheckRowOptions(impl_->desc, rows));
  impl_->phases = std::move(phases);
  return Status::Ok();
}

Status InMemoryDataset::SetBatches(int batch_size, int pv_batch_size, bool drop_last) {
  CHECK(!impl_->pass) << "SetBatches within a pass";
  if (batch_size <= 0) {
    return InvalidConfig("data_desc.batch_size must be positive, but is " + std::to_string(batch_size));
  }
  DataFeedDesc desc = impl_->desc;
  desc.set_batch_size(batch_size);
  desc.set_pv_batch_size(pv_batch_size);
  desc.set_drop_last(drop_last);
  InMemoryRows rows = impl_->options.rows;
  rows.phases = impl_->phases;
  MR_TRY(CheckRowOptions(desc, rows));
  impl_->desc = std::move(desc);
  return Status::Ok();
}

Status InMemoryDataset::DynamicAdjustChannelNum(int channels) {
  CHECK(!impl_->pass) << "DynamicAdjustChannelNum within a pass";
  if (channels < 1)
    return InvalidConfig("an InMemoryDataset has at least one channel, not " + std::to_string(channels));
  impl_->queue_num = channels;
  return Status::Ok();
}

int64_t InMemoryDataset::PvDataSize() const { return static_cast<int64_t>(impl_->views.size()); }

void InMemoryDataset::ReleaseMemory() {
  Impl& impl = *impl_;
  CHECK(!impl.pass) << "ReleaseMemory within a pass";
  if (impl.preload.joinable()) {
    impl.preload.request_stop();
    impl.preload.join();
    impl.preload = std::jthread();
    impl.preload_result.reset();
  }
  impl.Release();
  impl.row_files = impl.files;  // not when loading: files() can be called meanwhile
}

bool InMemoryDataset::IsLoaded() const { return impl_->is_loaded; }

int64_t InMemoryDataset::MemoryDataSize() const { return impl_->row_count; }

InMemoryDataset::ChannelRows InMemoryDataset::RowsInChannels() const {
  const Impl& impl = *impl_;
  ChannelRows rows{impl.input.rows(), {}, {}};
  if (impl.channels) {
    rows.output = impl.channels->output_rows();
    rows.consume = impl.channels->consume_rows();
  }
  return rows;
}

int64_t InMemoryDataset::MemoryBytes() const {
  const size_t handles = impl_->order.capacity() + impl_->loaded.capacity() + impl_->views.order.capacity() +
                         impl_->shuffled_views.order.capacity() + impl_->donors.candidates.capacity();
  return static_cast<int64_t>(impl_->rows.bytes() + impl_->input.bytes() + handles * sizeof(RowHandle));
}

}  // namespace millrace
