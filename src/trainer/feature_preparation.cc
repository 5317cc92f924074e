#include "trainer/feature_preparation.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/checkpoint_store.h"
#include "config/feed_names.h"
#include "core/harmless_text.h"
#include "core/numbers.h"
#include "core/words.h"
#include "data_feed.pb.h"
#include "datafeed/file_columns.h"
#include "datafeed/input_opener.h"
#include "datafeed/statistics_feeds.h"
#include "dataset/dataset_factory.h"
#include "dataset/queue_dataset.h"
#include "dataset/statistics_pass.h"
#include "features/feature_spec.h"
#include "features/feature_statistics.h"
#include "job/job_session.h"
#include "report/progress_line.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

/// What the features of the run knew whose checkpoint goes on; nullopt where there is none, so that the run starts
/// anew.
Result<std::optional<FeatureStates>> StatesOfCheckpoint(const FeaturePreparation& how) {
  MR_ASSIGN(const std::optional<CheckpointManifest> manifest, ManifestToResume(how.resume, how.output_dir));
  if (!manifest.has_value()) return std::optional<FeatureStates>();
  TrainerDesc job;
  if (!google::protobuf::TextFormat::ParseFromString(manifest->job(), &job)) return std::optional<FeatureStates>();
  return std::optional<FeatureStates>(job.data_desc().feature_states());
}

/// Refuses sets of the rows since a moment that no row has, before anything is trained. `read` are the training files.
Status CheckRowsSince(const TrainerDesc& desc, const PassStats& read) {
  std::string sets;
  for (const EvalDesc::Set& set : desc.eval().set()) {
    if (set.has_since())
      sets += (sets.empty() ? "" : "\n") + ("eval.set.since: set \"" + set.name() + "\": " + NoRowSince(set));
  }
  if (sets.empty() || read.counters.contains("of_other_times")) return Status::Ok();
  return BadData(sets + "\n  " + ShownTimes(read.names.times));
}

/// Reads the training files. `asked` is this process's own request to stop, `stop` that of any rank.
Status TakeStates(const FeaturePreparation& how, const Environment& environment, const std::stop_token& asked,
                  const std::stop_token& stop, LoadedConfig* config) {
  TrainerDesc& desc = *config->desc;
  const bool is_incremental = !config->pass_files.empty();
  const std::vector<std::string>& files = is_incremental ? config->pass_files[0] : config->files;
  const auto start = std::chrono::steady_clock::now();
  std::optional<ProgressLine> progress;
  if (how.terminal != nullptr) progress.emplace(ProgressLine::DetectOptions(how.terminal));
  StatisticsPass pass;
  DataFeedDesc feed = desc.data_desc();
  ChooseTrainedRows(desc, &feed);
  pass.desc = &feed;
  pass.files = &files;
  pass.feeds = &environment.feeds;
  pass.held = DatasetSettings::FromDesc(desc).held;
  pass.threads = std::max(1, desc.thread_num());
  pass.ranks = &how.ranks;
  // Hosts that serve may have no training files.
  pass.readers = std::max(1, how.ranks.size() - desc.dist().servers());
  const bool is_alone = how.ranks.size() == 1;
  pass.on_rows = [&](int64_t rows) {
    if (progress) {
      progress->ShowText("statistics of features: " + std::to_string(rows) + (is_alone ? " rows" : " rows of rank 0"));
    }
  };
  PassStats read;
  pass.read = &read;
  FeatureStates states;
  const Status taken = TakeStatistics(pass, asked, stop, &states);
  if (progress) progress->Clear();
  if (taken.code() == StatusCode::kBadData && read.rows == 0 && !read.names.times.column.empty()) {
    return BadData(taken.message() + ": " + ShownTimes(read.names.times) + RowsNotTrained(desc));
  }
  MR_TRY(Status(taken));
  if (is_alone && !pass.held.is_active()) MR_TRY(CheckRowsSince(desc, read));
  // A rank has read a part of the files.
  if (is_alone) {
    for (const auto& [once, warning] : ValueWarnings(read, Reads::kTraining)) {
      Say("warning: " + warning + "\n");
      config->said_of_values.insert(once);
    }
  }
  if (how.terminal != nullptr) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::fprintf(how.terminal, "statistics of features: %lld rows, %s s\n", static_cast<long long>(states.rows()),
                 FixedNumber(seconds.count(), 1).c_str());
  }
  desc.mutable_data_desc()->mutable_feature_states()->MergeFrom(states);
  if (how.ranks.leads()) {
    for (const std::string& warning : FarDefaults(desc.data_desc())) Say("warning: " + Harmless(warning) + "\n");
  }
  return Status::Ok();
}

/// Notes the columns of the first training file that names some, so that who reads others later can say what changed,
/// and of columnar files their types, since words of another type would be other words: those of the first file in
/// which a column has a value. Not of a file that a pipe_command writes or that comes once: looking at it would start
/// the command, or take its rows.
Status NoteColumns(const Environment& environment, const std::stop_token& stop, LoadedConfig* config) {
  constexpr int kMostFiles = 16;  // a columnar one takes half a second
  DataFeedDesc& feed = *config->desc->mutable_data_desc();
  if (feed.feature_states().column_size() > 0) return Status::Ok();
  const FeedKind* const kind = environment.feeds.Find(feed.name());
  const bool has_types = kind != nullptr && kind->names_command != nullptr;
  const std::vector<std::string> words = WordColumns(feed);
  if (has_types ? words.empty() : feed.name() != "csv") return Status::Ok();
  FeatureStates& states = *feed.mutable_feature_states();
  const auto lacks_type = [&](const std::string& column) {
    const auto at = std::find(states.column().begin(), states.column().end(), column) - states.column().begin();
    return at < states.type_size() && states.type(static_cast<int>(at)).empty();
  };
  for (size_t i = 0; i < std::min<size_t>(config->files.size(), kMostFiles); ++i) {
    if (states.column_size() > 0 && std::none_of(words.begin(), words.end(), lacks_type)) break;
    const std::string& file = config->files[i];
    // What is no file of this machine a command fetches, as often as it is asked to.
    std::error_code unknown;
    const bool is_there = std::filesystem::exists(file, unknown);
    if (is_there ? !std::filesystem::is_regular_file(file, unknown) : !has_types) break;
    const Result<FileColumns> columns = ColumnsOfFile(environment.feeds, feed, file, stop);
    if (columns.status().code() == StatusCode::kCancelled) return columns.status();
    if (!columns.ok()) break;  // the reading of rows says what is wrong
    const bool has_none =
        std::all_of(columns->names.begin(), columns->names.end(), [](const std::string& name) { return name.empty(); });
    if (has_none) continue;  // an empty file
    if (states.column_size() == 0) {
      states.mutable_column()->Assign(columns->names.begin(), columns->names.end());
      states.mutable_type()->Assign(columns->types.begin(), columns->types.end());
      if (has_types) states.set_file(file);
    }
    for (size_t k = 0; k < columns->types.size(); ++k) {
      if (!lacks_type(columns->names[k])) continue;
      const auto at = std::find(states.column().begin(), states.column().end(), columns->names[k]);
      states.set_type(static_cast<int>(at - states.column().begin()), columns->types[k]);
    }
  }
  return Status::Ok();
}

/// How the first rows of a training file, so many batches at most, write whole numbers that are words. Nothing is known
/// of a file that does not read: the reading of all rows says what is wrong.
ValueNames BeginOf(const std::string& file, int64_t batches, const DataFeedDesc& desc, const Environment& environment,
                   const std::stop_token& stop) {
  QueueDatasetOptions options;
  options.reads_ahead = false;  // so that it is always these rows
  options.stop = stop;
  const auto dataset = QueueDataset::Create(desc, {file}, environment.feeds, std::move(options));
  if (!dataset.ok() || !(*dataset)->BeginPass({}).ok()) return {};
  for (bool has_more = true; has_more && batches > 0; --batches) {
    const auto batch = (*dataset)->source(0).Next(stop);
    if (!batch.ok()) return {};
    has_more = *batch != nullptr;
  }
  const Result<PassStats> read = (*dataset)->EndPass();
  return read.ok() ? read->names : ValueNames();
}

/// Adds what the first rows of a file say of `unknown` columns, and takes those with a value out of these.
void NoteFirstValues(const ValueNames& names, std::set<std::string>* unknown, FeatureStates* states) {
  for (const std::string& column : names.others) {
    if (unknown->erase(column) > 0) states->add_whole_number()->set_column(column);
  }
  std::set<std::string> known;
  for (const auto* const numbers : names.forms()) {
    for (const auto& [column, number] : *numbers) {
      if (!unknown->contains(column)) continue;
      known.insert(column);
      const auto forms = names.forms();
      if (std::count_if(forms.begin(), forms.end(),
                        [&column = column](const auto* form) { return form->contains(column); }) > 1) {
        continue;
      }
      FeatureStates::WholeNumber& noted = *states->add_whole_number();
      noted.set_column(column);
      noted.set_text(number.text);
      noted.set_place(number.place);
    }
  }
  for (const std::string& column : known) unknown->erase(column);
}

/// Notes the zones of each column in `names` that has none yet, and takes the column out of `unknown`. Of a column in
/// which only some times have a zone nothing is noted.
void NoteFirstTimes(const ValueNames& names, std::set<std::string>* unknown, FeatureStates* states) {
  for (const auto& [column, zones] : names.zones) {
    const auto is_it = [&column = column](const auto& time) { return time.column() == column; };
    if (std::any_of(states->time().begin(), states->time().end(), is_it)) continue;
    unknown->erase(column);
    if (zones.empty() || (zones.size() > 1 && zones.contains(""))) continue;
    const auto known = std::find(states->column().begin(), states->column().end(), column) - states->column().begin();
    const std::string type = known < states->type_size() ? states->type(static_cast<int>(known)) : "";
    constexpr std::string_view kTimestamp = "timestamp[";
    for (const auto& [zone, first] : zones) {
      FeatureStates::ColumnTime& noted = *states->add_time();
      noted.set_column(column);
      if (!zone.empty()) noted.set_zone(zone);
      noted.set_place(first.place);
      if (type.starts_with(kTimestamp)) {
        noted.set_unit(type.substr(kTimestamp.size(), type.find_first_of(",]") - kTimestamp.size()));
      }
    }
  }
}

/// Notes how the training files begin to write whole numbers and truth values that are words, and which zone times
/// have, so that who reads others later can say where these write them otherwise. A column counts from its first value
/// on, which is looked for in a million rows, and then where each file begins. Not of files that a pipe_command writes,
/// or that come once.
void NoteFirstRows(const Environment& environment, const std::stop_token& stop, LoadedConfig* config) {
  constexpr int kRows = 4096;
  constexpr int64_t kMostBatches = 256;
  constexpr int kMostFiles = 256;
  DataFeedDesc& feed = *config->desc->mutable_data_desc();
  const std::vector<std::string> words = WordColumns(feed);
  const std::map<std::string, DatePartStep::Format> clocks = ClockColumns(feed);
  const bool is_known = feed.feature_states().whole_number_size() > 0 || feed.feature_states().time_size() > 0;
  if ((words.empty() && clocks.empty()) || !PipeCommandOf(feed).empty() || is_known) return;
  DataFeedDesc first = StatisticsDesc(feed);
  first.clear_multi_slot_desc();
  std::set<std::string> slots;
  for (const Slot& slot : feed.multi_slot_desc().slots()) {
    const bool is_clock = std::any_of(feed.feature().begin(), feed.feature().end(), [&](const FeatureDesc& feature) {
      return feature.has_date_part() && feature.name() == slot.name();
    });
    if (slot.type() != "uint64" && !is_clock) continue;  // words, ids, times
    *first.mutable_multi_slot_desc()->add_slots() = slot;
    slots.insert(slot.name());
  }
  ForgetStatistics(&first);
  first.set_batch_size(kRows);
  first.set_thread_num(1);
  std::set<std::string> unknown(words.begin(), words.end());
  std::set<std::string> unknown_times;
  for (const auto& [column, format] : clocks) {
    if (format == DatePartStep::ISO_8601) unknown_times.insert(column);
  }
  // Of a column that no feature reads, no value would ever come.
  const std::vector<std::string> read =
      ColumnsOfSlots(first, [&](const FeatureDesc& feature) { return slots.contains(feature.name()); });
  const auto is_unread = [&](const std::string& column) {
    return !std::binary_search(read.begin(), read.end(), column);
  };
  std::erase_if(unknown, is_unread);
  std::erase_if(unknown_times, is_unread);
  FeatureStates& states = *feed.mutable_feature_states();
  int64_t batches_left = kMostBatches;
  for (size_t i = 0; i < std::min<size_t>(config->files.size(), kMostFiles); ++i) {
    if (unknown.empty() && unknown_times.empty()) break;
    const std::string& file = config->files[i];
    std::error_code none;
    if (!std::filesystem::is_regular_file(file, none)) break;
    ValueNames names = BeginOf(file, 1, first, environment, stop);
    NoteFirstValues(names, &unknown, &states);
    NoteFirstTimes(names, &unknown_times, &states);
    if ((unknown.empty() && unknown_times.empty()) || names.lines < kRows || batches_left <= 1) continue;
    names = BeginOf(file, batches_left, first, environment, stop);
    NoteFirstValues(names, &unknown, &states);
    NoteFirstTimes(names, &unknown_times, &states);
    batches_left -= std::max<int64_t>(names.lines / kRows, 1);
  }
}

/// What is known without a reading of all files.
Status PrepareKnown(const FeaturePreparation& how, const Environment& environment, const std::stop_token& stop,
                    LoadedConfig* config) {
  DataFeedDesc& feed = *config->desc->mutable_data_desc();
  if (how.resume != "never") {
    MR_ASSIGN(std::optional<FeatureStates> states, StatesOfCheckpoint(how));
    if (states.has_value()) *feed.mutable_feature_states() = std::move(*states);
    if (states.has_value() && !config->desc->infer()) return Status::Ok();
  }
  if (!config->desc->infer()) {
    MR_TRY(NoteColumns(environment, stop, config));
    NoteFirstRows(environment, stop, config);
    return Status::Ok();
  }
  if (!NeedsStatistics(feed)) return Status::Ok();
  return InvalidConfig(
      "features of the job have statistics of what it was trained on, and an inference takes none: --resume=auto, with "
      "the output folder of the training, knows them");
}

/// The rows of a pipe come once: reading it again waits for another writer, or finds nothing.
Status CheckReadTwice(const FeaturePreparation& how, const LoadedConfig& config) {
  if (!how.reads_again || !NeedsStatistics(config.desc->data_desc())) return Status::Ok();
  for (const std::string& file : config.pass_files.empty() ? config.files : config.pass_files[0]) {
    if (!config.files_read_once.contains(file)) continue;
    return InvalidConfig(
        "\"" + Harmless(file) +
        "\" is no plain file: a pipe can be read only once, and this job reads it twice (statistics of "
        "features, training): write its rows to a file");
  }
  return Status::Ok();
}

/// The leader says what is known, and all read their files. A stop of any rank ends both.
Status Prepare(const FeaturePreparation& how, const Environment& environment, const std::stop_token& stop,
               LoadedConfig* config) {
  RankGroup& ranks = how.ranks;
  MR_TRY(CheckRanksOfStep(*config->desc, ranks.size()));  // before the files are read
  const std::stop_token ended = ranks.cancellation().Begin();
  const std::stop_callback give_up(stop, [&ranks] { ranks.cancellation().GiveUp(); });
  Status known = ranks.leads() ? PrepareKnown(how, environment, ended, config) : Status::Ok();
  if (ranks.leads() && known.ok()) known = CheckReadTwice(how, *config);
  MR_TRY(ranks.AgreeOnEnd(known, stop));
  DataFeedDesc& feed = *config->desc->mutable_data_desc();
  MR_TRY(ranks.FromLeader(feed.mutable_feature_states()));
  return NeedsStatistics(feed) ? TakeStates(how, environment, stop, ended, config) : Status::Ok();
}

}  // namespace

Status PrepareFeatures(const FeaturePreparation& how, const Environment& environment, std::stop_token stop,
                       LoadedConfig* config) {
  if (config->desc->data_desc().feature_size() == 0) return Status::Ok();
  Status prepared = Prepare(how, environment, stop, config);
  if (prepared.code() != StatusCode::kCancelled) return prepared;
  return Cancelled("stopped while statistics of features were taken; nothing of them is kept");
}

}  // namespace millrace
