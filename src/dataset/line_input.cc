#include "dataset/line_input.h"

#include <tuple>

#include "core/words.h"
#include "data_feed.pb.h"

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

Result<bool> LineReader::NextBlock(int lane, DataFeed* feed, const std::stop_token& stop) {
  MR_ASSIGN(const bool got, blocks_->Next(lane, block_, stop));
  if (!got) return false;
  MR_TRY(BeginBlock(block_, *blocks_, feed));
  text_ = block_.text();
  number_ = block_.first_line;
  rules_.held.BeginFile(file(), block_.file);
  rules_.sample.BeginFile(file(), block_.file);
  return true;
}

bool LineReader::SkipTrained() {
  if (rules_.trained == nullptr || !rules_.trained->Contains(block_.file, number_ - 1)) return false;
  block_.TakeLine(&text_);
  ++number_;
  ++trained_before_;
  return true;
}

void LineReader::AddTo(const DataFeed& feed, PassStats* stats) const {
  if (rules_.held.excluded() > 0) stats->counters["of_other_sets"] += rules_.held.excluded();
  if (rules_.sample.excluded() > 0) stats->counters["sampled_out"] += rules_.sample.excluded();
  if (trained_before_ > 0) stats->counters["trained_before"] += trained_before_;
  const auto* const naming = dynamic_cast<const NamedValuesFeed*>(&feed);
  if (naming == nullptr) return;
  ValueNames names = naming->names();
  const auto find_place = [this](NumberForm* value) {
    std::tie(value->file, value->line) = form_lines_.at(value->nth);
    value->place = blocks_->DescribeByte(value->file, value->line, value->column);
  };
  for (auto* const numbers : names.forms()) {
    for (auto& [column, number] : *numbers) find_place(&number);
  }
  for (auto& [column, of_column] : names.zones) {
    for (auto& [zone, time] : of_column) find_place(&time);
  }
  for (auto& [column, time] : names.of_1970) find_place(&time);
  stats->names.Add(names);
}

Status LineReader::Report(uint64_t number, std::string_view line, const LineError& error) const {
  Status status = blocks_->DescribeLine(error, block_.file, number);
  if (error.ends_reading) return status;
  return bad_lines_->Report(LineErrorKindName(error.kind), status.message(),
                            block_.has_sizes ? std::string_view() : line);
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
