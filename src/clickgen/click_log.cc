#include "clickgen/click_log.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "clickgen/attainable.h"
#include "clickgen/part_files.h"
#include "clickgen/row_sampler.h"
#include "clickgen/row_text.h"
#include "core/caught.h"
#include "core/gzip_member.h"

namespace millrace {
namespace {

constexpr int64_t kBlockRows = 4096;

struct Outcome {
  double probability;
  bool clicked;
};

// Rows [begin, end) of one part: bytes to write, and the probabilities of their labels.
struct Block {
  std::string bytes;
  std::vector<Outcome> outcomes;
};

// Generates the blocks of a split on several threads and writes them in order.
class SplitWriter {
 public:
  SplitWriter(const ClickLogOptions& options, const RowSampler& sampler, const RowText& text, int split, int64_t rows,
              const std::string& folder)
      : options_(options),
        sampler_(sampler),
        text_(text),
        split_(split),
        rows_(rows),
        part_rows_((rows + options.parts - 1) / options.parts),
        blocks_per_part_((part_rows_ + kBlockRows - 1) / kBlockRows),
        files_(folder, options.gzip ? ".gz" : "") {}

  Result<ClickLogSplit> Write(const std::string& name) {
    {
      std::vector<std::jthread> threads;
      EndWith(Caught("the click log", [&] {
        for (int i = 0; i < options_.threads; ++i) {
          threads.emplace_back([this] { EndWith(Caught("the click log", [this] { return Work(); })); });
        }
        return Status::Ok();
      }));
    }
    MR_TRY(status_);
    MR_TRY(files_.Close());
    return ClickLogSplit{name,
                         files_.paths(),
                         attainable_.rows(),
                         files_.bytes(),
                         attainable_.clicks(),
                         attainable_.Auc(),
                         attainable_.LogLoss()};
  }

 private:
  void EndWith(Status status) {
    if (status.ok()) return;
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    turn_changed_.notify_all();
  }

  Status Work() {
    Block block;
    while (true) {
      const int64_t number = next_.fetch_add(1);
      const auto part = static_cast<int>(number / blocks_per_part_);
      if (part >= options_.parts) return Status::Ok();
      Make(part, number % blocks_per_part_, &block);
      MR_TRY(Hand(number, part, block));
    }
  }

  void Make(int part, int64_t block_of_part, Block* block) const {
    const int64_t begin = part * part_rows_ + block_of_part * kBlockRows;
    const int64_t end = std::min({begin + kBlockRows, (part + 1) * part_rows_, rows_});
    block->bytes.clear();
    block->outcomes.clear();
    ClickRow row;
    for (int64_t number = begin; number < end; ++number) {
      sampler_.Sample(split_, number, &row);
      text_.Append(row, &block->bytes);
      block->outcomes.push_back({row.probability, row.clicked});
    }
    if (options_.gzip) block->bytes = GzipMember(block->bytes);
  }

  // Waits for the block's turn, then writes it.
  Status Hand(int64_t number, int part, const Block& block) {
    std::unique_lock lock(mutex_);
    turn_changed_.wait(lock, [&] { return turn_ == number || !status_.ok(); });
    MR_TRY(status_);
    MR_TRY(files_.Append(part, block.bytes));
    for (const Outcome& outcome : block.outcomes) attainable_.Add(outcome.probability, outcome.clicked);
    ++turn_;
    turn_changed_.notify_all();
    return Status::Ok();
  }

  const ClickLogOptions& options_;
  const RowSampler& sampler_;
  const RowText& text_;
  const int split_;
  const int64_t rows_;
  const int64_t part_rows_;
  const int64_t blocks_per_part_;
  std::atomic<int64_t> next_ = 0;

  std::mutex mutex_;
  std::condition_variable turn_changed_;
  int64_t turn_ = 0;  // the members below are guarded by mutex_
  PartFiles files_;
  Attainable attainable_;
  Status status_;
};

Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? IoErrorFromErrno("cannot create the folder " + path, error.value()) : Status::Ok();
}

Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Status::Ok() : IoErrorFromErrno("cannot write " + path, errno);
}

}  // namespace

Result<std::vector<ClickLogSplit>> WriteClickLog(const ClickLogOptions& options, const std::string& folder) {
  MR_TRY(Validate(options));
  const RowSampler sampler(options);
  const RowText text(options.format);
  std::vector<ClickLogSplit> splits;
  const std::pair<std::string, int64_t> wanted[] = {{"train", options.train_rows}, {"test", options.test_rows}};
  for (int split = 0; split < 2; ++split) {
    const auto& [name, rows] = wanted[split];
    if (rows == 0 || (folder == "-" && split > 0)) continue;
    const std::string split_folder = folder == "-" ? folder : folder + "/" + name;
    if (folder != "-") MR_TRY(MakeFolder(split_folder));
    MR_ASSIGN(ClickLogSplit written, SplitWriter(options, sampler, text, split, rows, split_folder).Write(name));
    splits.push_back(std::move(written));
  }
  if (folder == "-") return splits;
  MR_TRY(WriteFile(folder + "/data_feed.prototxt", SlotsAsPrototxt(options)));
  MR_TRY(WriteFile(folder + "/meta.json", MetaJson(options, splits)));
  return splits;
}

}  // namespace millrace
