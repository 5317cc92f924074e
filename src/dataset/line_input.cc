#include "dataset/line_input.h"

#include "core/edit_distance.h"
#include "core/harmless_text.h"
#include "core/words.h"
#include "data_feed.pb.h"
#include "datafeed/column_feed.h"

namespace millrace {

Status CheckLineInput(const DataFeedDesc& desc) {
  if (desc.batch_size() <= 0) {
    return InvalidConfig("data_desc.batch_size must be positive, but is " + std::to_string(desc.batch_size()));
  }
  if (desc.pipe_retries() < 0) {
    return InvalidConfig("data_desc.pipe_retries must not be negative, but is " + std::to_string(desc.pipe_retries()));
  }
  if (desc.has_thread_num() && desc.thread_num() <= 0) {
    return InvalidConfig("data_desc.thread_num must be positive, but is " + std::to_string(desc.thread_num()));
  }
  return Status::Ok();
}

Status BeginBlock(const LineBlock& block, const LineBlockQueue& blocks, DataFeed* feed) {
  auto* const headed = dynamic_cast<HeadedFeed*>(feed);
  if (headed == nullptr) return Status::Ok();
  const Status taken = headed->TakeHeader(block.header != nullptr ? std::string_view(*block.header) : "");
  if (!taken.ok()) return Status(taken).Context(blocks.DescribeLine(block.file, 1));
  if (!headed->note().empty()) Say("note: " + blocks.DescribeLine(block.file, 1) + ": " + headed->note() + "\n");
  return Status::Ok();
}

void TellOfAbsentNames(std::span<DataFeed* const> feeds, const std::vector<std::string>& files) {
  NamedValuesFeed::Names all;
  SaidOnce* said = nullptr;
  for (DataFeed* const feed : feeds) {
    const auto* const naming = dynamic_cast<const NamedValuesFeed*>(feed);
    if (naming == nullptr || naming->said() == nullptr) return;
    NamedValuesFeed::Names names = naming->names();
    if (said == nullptr) all.absent = names.absent;
    said = naming->said();
    all.lines += names.lines;
    all.of_first.merge(names.of_first);
    std::erase_if(all.absent, [&](const std::string& column) { return !names.absent.contains(column); });
  }
  if (all.lines == 0) return;
  const std::vector<std::string_view> known(all.of_first.begin(), all.of_first.end());
  const size_t others = files.size() - 1;
  const std::string where =
      files[0] + (others == 0 ? "" : " and " + std::to_string(others) + " more file" + (others == 1 ? "" : "s"));
  for (const std::string& column : all.absent) {
    if (!said->IsNew("no line has " + column)) continue;
    Say("warning: no line of " + where + " (" + std::to_string(all.lines) + (all.lines == 1 ? " line" : " lines") +
        ") has the key \"" + column +
        "\", so that the feature which takes it finds no value: correct its from, or its name where it has no from" +
        Harmless(DidYouMean(column, known)) + "\n");
  }
}

Status LineReader::Report(const LineBlock& block, uint64_t number, std::string_view line,
                          const LineError& error) const {
  Status status = blocks_->DescribeLine(error, block.file, number);
  if (error.ends_reading) return status;
  return bad_lines_->Report(LineErrorKindName(error.kind), status.message(),
                            block.has_sizes ? std::string_view() : line);
}

PassStats StatsOfFiles(const LineBlockQueue& blocks, const BadLines& bad_lines) {
  const LineBlockQueueStats files = blocks.stats();
  PassStats stats;
  stats.files = files.files;
  stats.bytes = files.bytes;
  stats.lines = files.lines;
  stats.bad_lines = bad_lines.bad_lines();
  stats.first_bad_lines = bad_lines.first_lines();
  stats.quarantine_path = bad_lines.quarantine_path();
  stats.counters = bad_lines.counts_by_kind();
  if (files.empty_files > 0) stats.counters["empty_file"] = files.empty_files;
  if (files.retries > 0) stats.counters["pipe_retry"] = files.retries;
  for (size_t stage = 0; stage < kInputStages; ++stage) {
    const double seconds = files.stage_seconds[stage];
    if (seconds > 0) stats.stage_seconds[std::string(InputStageName(static_cast<InputStage>(stage)))] = seconds;
  }
  return stats;
}

}  // namespace millrace
