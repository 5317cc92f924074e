#include "trainer/feature_preparation.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/contained_file.h"
#include "core/line_blocks.h"
#include "data_feed.pb.h"
#include "datafeed/csv_column_feed.h"
#include "datafeed/input_opener.h"
#include "dataset/dataset_factory.h"
#include "dataset/statistics_pass.h"
#include "features/feature_statistics.h"
#include "runtime/checkpoint_manifest.h"
#include "trainer/checkpoint_store.h"
#include "trainer/progress_line.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

/// What the features of the run knew whose checkpoint goes on; nullopt where there is none, so that the run starts
/// anew.
Result<std::optional<FeatureStates>> StatesOfCheckpoint(const FeaturePreparation& how) {
  std::optional<CheckpointManifest> manifest;
  if (how.resume == "auto") {
    manifest = CheckpointStore::Open(how.output_dir + "/checkpoints", 1).NewestManifest();
  } else {
    if (!MayBeThere(how.resume + "/MANIFEST")) return NoCheckpoint(how.resume);
    MR_ASSIGN(manifest, ReadManifest(how.resume + "/MANIFEST"));
  }
  if (!manifest.has_value()) return std::optional<FeatureStates>();
  TrainerDesc job;
  if (!google::protobuf::TextFormat::ParseFromString(manifest->job(), &job)) return std::optional<FeatureStates>();
  return std::optional<FeatureStates>(job.data_desc().feature_states());
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
  pass.ranks = how.ranks;
  // Hosts that serve may have no training files.
  if (how.ranks != nullptr) pass.readers = std::max(1, how.ranks->size() - desc.dist().servers());
  pass.on_rows = [&](int64_t rows) {
    if (progress) {
      progress->ShowText("statistics of features: " + std::to_string(rows) +
                         (how.ranks == nullptr ? " rows" : " rows of rank 0"));
    }
  };
  FeatureStates states;
  const Status taken = TakeStatistics(pass, asked, stop, &states);
  if (progress) progress->Clear();
  MR_TRY(Status(taken));
  if (how.terminal != nullptr) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::fprintf(how.terminal, "statistics of features: %lld rows, %.1f s\n", static_cast<long long>(states.rows()),
                 seconds.count());
  }
  desc.mutable_data_desc()->mutable_feature_states()->MergeFrom(states);
  return Status::Ok();
}

/// Notes the columns of the first training file, so that who reads others later can say what changed. Not of a file
/// that a command writes or that comes once: looking at it would start the command, or take its rows.
Status NoteColumns(const Environment& environment, const std::stop_token& stop, LoadedConfig* config) {
  DataFeedDesc& feed = *config->desc->mutable_data_desc();
  std::error_code unknown;
  if (feed.name() != "csv" || feed.feature_states().column_size() > 0 || config->files.empty() ||
      !PipeCommandOf(feed).empty() || !std::filesystem::is_regular_file(config->files[0], unknown)) {
    return Status::Ok();
  }
  MR_ASSIGN(const SlotSchema schema, SlotSchema::Create(feed));
  MR_ASSIGN(const LineCut cut, environment.feeds.CutOf(feed.name(), schema, feed));
  if (cut.header == nullptr) return Status::Ok();
  MR_ASSIGN(const auto opener, InputOpener::Create(feed, {config->files[0]}, stop));
  MR_ASSIGN(OpenedInput opened, opener->Open(config->files[0]));
  LineBlockReader reader(std::move(opened.source), 0, opener->line_limit());
  LineBlock block;
  const Result<bool> is_read = reader.Next(block, stop, BlockReader::Fill::kForAMoment);
  if (!is_read.ok() || !*is_read) return Status::Ok();  // the reading of rows says what is wrong
  std::string_view text = block.text();
  const Result<std::vector<std::string>> names = CsvHeaderNames(cut.header(block.TakeLine(&text)), feed);
  if (!names.ok()) return Status::Ok();  // likewise
  feed.mutable_feature_states()->mutable_column()->Assign(names->begin(), names->end());
  return Status::Ok();
}

/// What is known without a reading of all files.
Status PrepareKnown(const FeaturePreparation& how, const Environment& environment, const std::stop_token& stop,
                    LoadedConfig* config) {
  DataFeedDesc& feed = *config->desc->mutable_data_desc();
  if (how.resume != "never") {
    MR_ASSIGN(std::optional<FeatureStates> states, StatesOfCheckpoint(how));
    if (states.has_value()) *feed.mutable_feature_states() = std::move(*states);
  }
  if (!config->desc->infer()) return NoteColumns(environment, stop, config);
  if (!NeedsStatistics(feed)) return Status::Ok();
  return InvalidConfig(
      "features of the job have statistics of what it was trained on, and an inference takes none: --resume=auto, with "
      "the output folder of the training, knows them");
}

Status Prepare(const FeaturePreparation& how, const Environment& environment, const std::stop_token& stop,
               LoadedConfig* config) {
  MR_TRY(PrepareKnown(how, environment, stop, config));
  return NeedsStatistics(config->desc->data_desc()) ? TakeStates(how, environment, stop, stop, config) : Status::Ok();
}

/// The leader says what is known, and all read their files. A stop of any rank ends both.
Status PrepareOnRanks(const FeaturePreparation& how, const Environment& environment, const std::stop_token& stop,
                      LoadedConfig* config) {
  RankGroup& ranks = *how.ranks;
  const std::stop_token ended = ranks.common_end().Begin();
  const std::stop_callback give_up(stop, [&ranks] { ranks.common_end().GiveUp(); });
  const Status known = ranks.leads() ? PrepareKnown(how, environment, ended, config) : Status::Ok();
  MR_TRY(ranks.AgreeOnEnd(known, stop));
  DataFeedDesc& feed = *config->desc->mutable_data_desc();
  MR_TRY(ranks.FromLeader(feed.mutable_feature_states()));
  return NeedsStatistics(feed) ? TakeStates(how, environment, stop, ended, config) : Status::Ok();
}

}  // namespace

Status PrepareFeatures(const FeaturePreparation& how, const Environment& environment, std::stop_token stop,
                       LoadedConfig* config) {
  if (config->desc->data_desc().feature_size() == 0) return Status::Ok();
  Status prepared =
      how.ranks == nullptr ? Prepare(how, environment, stop, config) : PrepareOnRanks(how, environment, stop, config);
  if (prepared.code() != StatusCode::kCancelled) return prepared;
  return Cancelled("stopped while statistics of features were taken; nothing of them is kept");
}

}  // namespace millrace
