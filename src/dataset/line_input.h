#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/utf8.h"
#include "datafeed/bad_lines.h"
#include "datafeed/data_feed.h"
#include "datafeed/line_block_queue.h"
#include "dataset/dataset.h"

namespace millrace {

class DataFeedDesc;

/// Checks the numeric fields of a data_desc that control reading. Fails with kInvalidConfig at the first invalid one.
Status CheckLineInput(const DataFeedDesc& desc);

/// Passes the header of a block to a feed that uses one; call it before parsing the block's lines. Fails with kBadData
/// and the header's position.
Status BeginBlock(const LineBlock& block, const LineBlockQueue& blocks, DataFeed* feed);

/// Reads the lines of a thread's blocks one by one and reports bad ones. One thread; what it refers to must outlive it.
class LineReader {
 public:
  LineReader(const LineBlockQueue& blocks, BadLines& bad_lines) : blocks_(&blocks), bad_lines_(&bad_lines) {}

  /// Parses line `number` of the block's file with `feed`, into `sink` if given; a header gives no row. Calls
  /// `on_bad(error)` for a bad line and then reports it. Fails if either fails (kBadData once the limits are exceeded),
  /// or with the feed's own failure.
  template <class OnBad, class Feed, class... Sink>
  Result<LineResult> Read(const LineBlock& block, uint64_t number, std::string_view line, const OnBad& on_bad,
                          Feed& feed, Sink&... sink) {
    MR_ASSIGN(const LineResult result,
              number == 1 ? ReadFirst(block, line, feed, sink...) : feed.ParseLine(line, sink...));
    if (result == LineResult::kBad) {
      MR_TRY(on_bad(feed.error()));
      MR_TRY(Report(block, number, line, feed.error()));
    }
    if (const int64_t non_finite = feed.counters().non_finite; non_finite != non_finite_) [[unlikely]] {
      non_finite_ = non_finite;
      bad_lines_->SawNonFinite([&] { return blocks_->DescribeLine(block.file, number); },
                               [&] { return HasColumns(feed); });
    }
    const auto forms = static_cast<size_t>(feed.counters().number_forms);
    if (forms != form_lines_.size()) [[unlikely]]
      form_lines_.resize(forms, {block.file, number});
    return result;
  }
  /// Adds the names the feed has seen to `stats`; call it after the last line of a pass.
  void AddNames(const DataFeed& feed, PassStats* stats) const;

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
  static Result<LineResult> ReadFirst(const LineBlock& block, std::string_view line, Feed& feed, Sink&... sink) {
    if (block.header != nullptr) return LineResult::kBlank;
    return feed.ParseLine(block.has_sizes ? line : WithoutByteOrderMark(line), sink...);
  }
  Status Report(const LineBlock& block, uint64_t number, std::string_view line, const LineError& error) const;

  const LineBlockQueue* blocks_;
  BadLines* bad_lines_;
  int64_t non_finite_ = 0;                                 ///< the feed's count up to the last line
  std::vector<std::pair<uint32_t, uint64_t>> form_lines_;  ///< by NumberForm::nth: file and line
};

/// Statistics of the files of a pass. The caller adds rows and the counts of its parsing threads.
PassStats StatsOfFiles(const LineBlockQueue& blocks, const BadLines& bad_lines);

}  // namespace millrace
