#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batch/consumed_ranges.h"
#include "core/status.h"
#include "core/utf8.h"
#include "datafeed/bad_lines.h"
#include "datafeed/data_feed.h"
#include "datafeed/line_block_queue.h"
#include "dataset/dataset.h"
#include "dataset/line_draw.h"

namespace millrace {

class DataFeedDesc;

/// Checks the numeric fields of a data_desc that control reading. Fails with kInvalidConfig at the first invalid one.
Status CheckLineInput(const DataFeedDesc& desc);

/// Passes the header of a block to a feed that uses one; call it before parsing the block's lines. Fails with kBadData
/// and the header's position.
Status BeginBlock(const LineBlock& block, const LineBlockQueue& blocks, DataFeed* feed);

/// Which lines of a pass are read.
struct LineRules {
  LineShare held = {};                      ///< of the dataset's set of lines (EvalDesc.Set.share), and a header
  LineShare sample = {};                    ///< of DatasetDesc.sample_rate
  const ConsumedRanges* trained = nullptr;  ///< not these; null: none were trained
};

/// Reads the lines of a thread's blocks one by one, skips lines that its rules exclude and counts them by reason, and
/// reports bad lines. One thread; what it refers to must outlive it.
class LineReader {
 public:
  LineReader(LineBlockQueue& blocks, BadLines& bad_lines, const LineRules& rules)
      : blocks_(&blocks), bad_lines_(&bad_lines), rules_(rules) {}

  /// Takes the next block for thread number `lane`; false at the end. Fails like LineBlockQueue::Next and BeginBlock.
  Result<bool> NextBlock(int lane, DataFeed* feed, const std::stop_token& stop);
  const LineBlock& block() const { return block_; }
  const std::string& file() const { return blocks_->files()[block_.file]; }
  /// Whether all lines of the block were read or skipped.
  bool at_end() const { return text_.empty(); }
  /// The number of the next line in its file, from 1.
  uint64_t number() const { return number_; }

  /// Skips the next line if an earlier run trained it.
  bool SkipTrained();
  /// Parses the next line with `feed`, into `sink` if given; a header and a line that the rules exclude give no row.
  /// Calls `on_bad(error)` for a bad line and then reports it. Fails if either fails (kBadData once the limits are
  /// exceeded), or with the feed's own failure.
  template <class OnBad, class Feed, class... Sink>
  Result<LineResult> Read(const OnBad& on_bad, Feed& feed, Sink&... sink) {
    const std::string_view line = block_.TakeLine(&text_);
    const uint64_t number = number_++;
    if (IsExcluded(number)) return LineResult::kBlank;
    MR_ASSIGN(const LineResult result, number == 1 ? ReadFirst(line, feed, sink...) : feed.ParseLine(line, sink...));
    if (result == LineResult::kBad) {
      MR_TRY(on_bad(feed.error()));
      MR_TRY(Report(number, line, feed.error()));
    }
    if (const int64_t non_finite = feed.counters().non_finite; non_finite != non_finite_) [[unlikely]] {
      non_finite_ = non_finite;
      bad_lines_->SawNonFinite([&] { return blocks_->DescribeLine(block_.file, number); },
                               [&] { return HasColumns(feed); });
    }
    const auto forms = static_cast<size_t>(feed.counters().number_forms);
    if (forms != form_lines_.size()) [[unlikely]]
      form_lines_.resize(forms, {block_.file, number});
    return result;
  }
  /// Adds the names the feed has seen and the counts of skipped lines to `stats`; call it after the last line of a
  /// pass.
  void AddTo(const DataFeed& feed, PassStats* stats) const;

 private:
  /// Whether values come from named columns; `feed` is a DataFeed or has one (FeedRows).
  template <class Feed>
  static bool HasColumns(const Feed& feed) {
    if constexpr (requires { feed.feed(); }) {
      return HasColumns(*feed.feed());
    } else {
      return dynamic_cast<const NamedValuesFeed*>(&feed) != nullptr;
    }
  }
  template <class Feed, class... Sink>
  Result<LineResult> ReadFirst(std::string_view line, Feed& feed, Sink&... sink) {
    if (block_.header != nullptr) return LineResult::kBlank;
    return feed.ParseLine(block_.has_sizes ? line : WithoutByteOrderMark(line), sink...);
  }
  bool IsExcluded(uint64_t number) {
    const bool is_header = number == 1 && block_.header != nullptr;
    return (!is_header && rules_.held.Excludes(number)) || rules_.sample.Excludes(number);
  }
  Status Report(uint64_t number, std::string_view line, const LineError& error) const;

  LineBlockQueue* blocks_;
  BadLines* bad_lines_;
  LineRules rules_;
  LineBlock block_;
  std::string_view text_;  ///< unread rest of the block
  uint64_t number_ = 1;
  int64_t trained_before_ = 0;
  int64_t non_finite_ = 0;                                 ///< the feed's count up to the last line
  std::vector<std::pair<uint32_t, uint64_t>> form_lines_;  ///< by NumberForm::nth: file and line
};

/// Statistics of the files of a pass. The caller adds rows and the counts of its parsing threads.
PassStats StatsOfFiles(const LineBlockQueue& blocks, const BadLines& bad_lines);

}  // namespace millrace
