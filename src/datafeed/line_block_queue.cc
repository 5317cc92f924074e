#include "datafeed/line_block_queue.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "batch/slot_batch.h"
#include "core/elapsed.h"
#include "datafeed/record_blocks.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

/// Whether a text contains a file name as a whole word, because a file named "a" would be found in any text.
bool NamesFile(std::string_view text, std::string_view file) {
  for (size_t at = text.find(file); at != std::string_view::npos; at = text.find(file, at + 1)) {
    const size_t end = at + file.size();
    const bool starts = at == 0 || text[at - 1] == ' ' || text[at - 1] == '"';
    if (starts && (end == text.size() || std::string_view(" :\";").find(text[end]) != std::string_view::npos))
      return true;
  }
  return false;
}

/// Adds "FILE: " and the number of preceding rows to the first line of a source's failure.
Status DescribeFailure(const Status& failure, const std::string& file, const BlockReader& reader, const LineCut& cut,
                       bool command_got_it_unpacked) {
  const std::string& message = failure.message();
  const size_t line_end = std::min(message.find('\n'), message.size());
  std::string text = message.substr(0, line_end);
  // Messages about a command contain no file name, even if a file is called "command".
  if (text.starts_with("command ") || !NamesFile(text, file)) text = file + ": " + text;
  if (reader.names_its_line()) return {failure.code(), std::move(text)};
  const std::string rows = "after " + std::to_string(reader.lines()) + " rows";
  if (cut.command.empty() || failure.code() == StatusCode::kIo) {
    text += " " + rows;
  } else if (reader.lines() > 0) {
    // The command of a format reports full sentences.
    text += " (" + rows + ")";
  }
  if (reader.ends_in_a_line()) text += std::string("; last ") + reader.unit() + " incomplete";
  text += message.substr(line_end);
  if (command_got_it_unpacked && failure.code() == StatusCode::kIo) {
    text += "\n  the file is packed; the command gets it unpacked";
  }
  return {failure.code(), std::move(text)};
}

/// Reports that it would block whenever no input is available, and records it.
class UnawaitedSource final : public ByteSource {
 public:
  UnawaitedSource(std::unique_ptr<ByteSource> source, bool* is_paused)
      : source_(std::move(source)), is_paused_(is_paused) {}
  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    *is_paused_ = false;
    return source_->Read(out, stop);
  }
  bool WaitReadable(std::chrono::milliseconds /*most*/) override {
    *is_paused_ = !source_->WaitReadable(std::chrono::milliseconds(0));
    return !*is_paused_;
  }

 private:
  std::unique_ptr<ByteSource> source_;
  bool* is_paused_;
};

/// The next file of a lane, with its command already started.
struct AheadOfLane {
  size_t file = 0;
  Status failure;  ///< of opening it; reported when it is this file's turn
  OpenedInput input;
};

}  // namespace

struct LineBlockQueue::Lane {
  std::mutex mutex;
  std::atomic<bool> done{false};  ///< this lane will not get another file
  std::unique_ptr<BlockReader> reader;
  std::shared_ptr<const std::string> header;  ///< of the current file
  std::optional<AheadOfLane> ahead;
  FileTurn turn = FileTurn::kFirst;
  size_t file = 0;
  int tries = 0;
  bool gave_a_block = false;  ///< of the current file
  bool is_paused = false;     ///< no input was available after the last block, if requested
  std::string track;          ///< its row in a trace
  int64_t opened = 0;         ///< opening time of the current file, for a trace
  InputStage stage = InputStage::kRead;
  std::shared_ptr<const std::atomic<int64_t>> unpacking;
  int64_t unpacking_counted = 0;
  LineBlockQueueStats stats;

  Status Describe(const Status& failure, const std::string& name, const LineCut& cut) const {
    return DescribeFailure(failure, name, *reader, cut, unpacking != nullptr);
  }
  /// Adds a thread's waiting time for bytes. Decompression for a command is counted separately and subtracted from the
  /// wait for the command.
  void AddWait(double seconds) {
    double unpacked = 0;
    if (unpacking != nullptr) {
      const int64_t so_far = unpacking->load(std::memory_order_relaxed);
      unpacked = 1e-9 * static_cast<double>(so_far - std::exchange(unpacking_counted, so_far));
    }
    stats.stage_seconds[static_cast<size_t>(InputStage::kDecompress)] += unpacked;
    stats.stage_seconds[static_cast<size_t>(stage)] += std::max(seconds - unpacked, 0.0);
  }
};

LineBlockQueue::LineBlockQueue(const InputOpener& opener, const std::vector<std::string>& files, const LineCut& cut,
                               const LineBlockQueueOptions& options)
    : opener_(&opener),
      files_(&files),
      cut_(cut),
      options_(options),
      file_queue_(options.shared != nullptr ? options.shared : &own_) {
  for (int i = 0; i < std::max(options.lanes, 1); ++i) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->track = options.traced_as + "files " + std::to_string(i);
  }
}

LineBlockQueue::~LineBlockQueue() = default;

Result<bool> LineBlockQueue::Next(int lane, LineBlock& block, const std::stop_token& stop) {
  const size_t first = static_cast<size_t>(lane) % lanes_.size();
  {
    Lane& own = *lanes_[first];
    const std::lock_guard lock(own.mutex);
    MR_ASSIGN(const bool got, TracedNext(lane, first, block, stop));
    if (got) return true;
  }
  // Help other lanes: first idle ones, then any.
  for (const bool wait : {false, true}) {
    for (size_t i = 1; i < lanes_.size(); ++i) {
      Lane& other = *lanes_[(first + i) % lanes_.size()];
      if (other.done.load(std::memory_order_acquire)) continue;
      std::unique_lock lock(other.mutex, std::defer_lock);
      if (wait) {
        lock.lock();
      } else if (!lock.try_lock()) {
        continue;
      }
      MR_ASSIGN(const bool got, TracedNext(lane, (first + i) % lanes_.size(), block, stop));
      if (got) return true;
    }
  }
  return false;
}

Result<bool> LineBlockQueue::TakeFile(Lane& lane, const std::stop_token& stop) const {
  lane.tries = 0;
  if (lane.ahead) {
    lane.file = lane.ahead->file;
    return true;
  }
  MR_ASSIGN(lane.file, file_queue_->Next(std::exchange(lane.turn, FileTurn::kLater), stop));
  return lane.file < files_->size();
}

Status LineBlockQueue::OpenFileOf(Lane& lane) const {
  OpenedInput input;
  // A retried file is not the one opened ahead.
  if (lane.ahead && lane.ahead->file == lane.file) {
    const Status failure = lane.ahead->failure;
    input = std::move(lane.ahead->input);
    lane.ahead.reset();
    MR_TRY(failure);
  } else {
    MR_ASSIGN(input, opener_->Open((*files_)[lane.file]));
  }
  lane.stage = input.stage;
  lane.unpacking = std::move(input.unpacking);
  lane.unpacking_counted = 0;
  lane.gave_a_block = false;
  lane.header.reset();
  const auto file = static_cast<uint32_t>(lane.file);
  if (options_.as_they_come && input.source != nullptr) {
    input.source = std::make_unique<UnawaitedSource>(std::move(input.source), &lane.is_paused);
  }
  if (!cut_.is_text()) {
    const std::string& name = (*files_)[lane.file];
    Result<std::unique_ptr<RecordSource>> records = cut_.records(std::move(input.source), name, opener_->line_limit());
    if (!records.ok()) return std::move(records).status().Context(name);
    lane.reader = std::make_unique<RecordBlockReader>(std::move(*records), file, cut_.block_bytes);
  } else {
    lane.reader = std::make_unique<LineBlockReader>(std::move(input.source), file, opener_->line_limit());
  }
  return Status::Ok();
}

Status LineBlockQueue::OpenAhead(Lane& lane, const std::stop_token& stop) const {
  if (lanes_.size() > 1 || !IsOfCommand(lane.stage) || lane.ahead) return Status::Ok();
  // Another process may finish first and take that file.
  if (options_.shared != nullptr) return Status::Ok();
  MR_ASSIGN(const size_t file, file_queue_->Next(FileTurn::kLater, stop));
  if (file >= files_->size()) return Status::Ok();
  lane.ahead.emplace();
  lane.ahead->file = file;
  Result<OpenedInput> opened = opener_->Open((*files_)[file]);
  if (opened.ok()) {
    lane.ahead->input = std::move(*opened);
  } else {
    lane.ahead->failure = std::move(opened).status();
  }
  return Status::Ok();
}

Result<bool> LineBlockQueue::TracedNext(int reader, size_t lane, LineBlock& block, const std::stop_token& stop) const {
  Lane& from = *lanes_[lane];
  if (options_.spans == nullptr) return NextOfLane(from, block, stop);
  const int64_t start = SteadyNanoseconds();
  Result<bool> got = NextOfLane(from, block, stop);
  if (!got.ok() || !*got) return got;
  options_.spans->Add(options_.traced_as + "reader " + std::to_string(reader), InputStageName(from.stage),
                      (*files_)[block.file], start);
  return got;
}

Result<bool> LineBlockQueue::NextOfLane(Lane& lane, LineBlock& block, const std::stop_token& stop) const {
  while (!lane.done.load(std::memory_order_relaxed)) {
    if (stop.stop_requested()) return Cancelled("stopped while reading files");
    const Clock::time_point start = Clock::now();
    if (!lane.reader) {
      MR_ASSIGN(const bool got_file, TakeFile(lane, stop));
      if (!got_file) {
        lane.done.store(true, std::memory_order_release);
        break;
      }
      if (options_.spans != nullptr) lane.opened = SteadyNanoseconds();
      MR_TRY(OpenFileOf(lane));
      MR_TRY(OpenAhead(lane, stop));
    }
    const uint64_t bytes_before = lane.reader->bytes();
    // Returned blocks cannot be taken back for a retry.
    const bool may_retry = !lane.gave_a_block && lane.tries < options_.retries && IsOfCommand(lane.stage);
    using Fill = BlockReader::Fill;
    Result<bool> got = lane.reader->Next(block, stop, may_retry ? Fill::kUntilFull : Fill::kForAMoment);
    lane.AddWait(std::chrono::duration<double>(Clock::now() - start).count());
    const Status failure = got.ok() ? lane.reader->failure() : got.status();
    if (failure.code() == StatusCode::kCancelled) return failure;
    if (!failure.ok() && may_retry) {
      ++lane.tries;
      ++lane.stats.retries;
      LOG(WARNING) << lane.Describe(failure, (*files_)[lane.file], cut_).message() << "\n  trying again (" << lane.tries
                   << " of " << options_.retries << ")";
      MR_TRY(OpenFileOf(lane));
      continue;
    }
    if (!got.ok()) return lane.Describe(failure, (*files_)[lane.file], cut_);
    if (*got) {
      if (cut_.header != nullptr && block.first_line == 1) {
        std::string_view text = block.text();
        const std::string_view header = cut_.header(block.TakeLine(&text));
        if (!header.empty()) lane.header = std::make_shared<const std::string>(header);
      }
      block.header = lane.header;
      lane.gave_a_block = true;
      lane.stats.lines += static_cast<int64_t>(block.lines);
      lane.stats.bytes += static_cast<int64_t>(lane.reader->bytes() - bytes_before);
      return true;
    }
    ++lane.stats.files;
    if (lane.reader->lines() <= (lane.header != nullptr ? uint64_t{1} : uint64_t{0})) ++lane.stats.empty_files;
    if (options_.spans != nullptr) options_.spans->Add(lane.track, "file", (*files_)[lane.file], lane.opened);
    lane.reader.reset();
  }
  return false;
}

std::string LineBlockQueue::DescribeLine(uint32_t file, uint64_t line) const {
  if (cut_.in_memory != nullptr) return DescribeLines((*files_)[file], line, line);
  const bool is_record = !cut_.is_text();
  std::string place = (*files_)[file] + (is_record ? ": record " : ":") + std::to_string(line);
  if (opener_->pipe_command().empty()) return place;
  return place + " (a " + (is_record ? "record" : "line") + " of pipe_command's output)";
}

std::string LineBlockQueue::DescribeByte(uint32_t file, uint64_t line, size_t byte) const {
  if (cut_.in_memory != nullptr || !cut_.is_text() || !opener_->pipe_command().empty()) return DescribeLine(file, line);
  return DescribeLine(file, line) + ":" + std::to_string(byte);
}

Status LineBlockQueue::DescribeLine(const LineError& error, uint32_t file, uint64_t line) const {
  if (cut_.in_memory != nullptr) return BadData(DescribeLines((*files_)[file], line, line) + ": " + error.ToString());
  const std::string& name = (*files_)[file];
  const bool is_record = !cut_.is_text();
  Status status = is_record ? BadData(name + ": record " + std::to_string(line) + ": " + error.ToString())
                            : error.ToStatus(name, line);
  if (opener_->pipe_command().empty()) return status;
  return BadData(status.message() + (is_record ? " (record " : " (line ") + std::to_string(line) + " of what " +
                 ShownCommand(opener_->pipe_command()) + " wrote for " + name + ")");
}

bool LineBlockQueue::is_paused() const {
  const std::lock_guard lock(lanes_[0]->mutex);
  return lanes_[0]->is_paused;
}

LineBlockQueueStats LineBlockQueue::stats() const {
  LineBlockQueueStats sum;
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    const std::lock_guard lock(lane->mutex);
    sum.files += lane->stats.files;
    sum.empty_files += lane->stats.empty_files;
    sum.retries += lane->stats.retries;
    sum.bytes += lane->stats.bytes;
    sum.lines += lane->stats.lines;
    for (size_t i = 0; i < sum.stage_seconds.size(); ++i) sum.stage_seconds[i] += lane->stats.stage_seconds[i];
  }
  return sum;
}

}  // namespace millrace
