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

/// Checks the numbers of a data_desc that say how lines are read. kInvalidConfig for the first one that is amiss.
Status CheckLineInput(const DataFeedDesc& desc);

/// To be called before the lines of a block are parsed: hands its header to a feed that takes one. kBadData with the
/// header's place.
Status BeginBlock(const LineBlock& block, const LineBlockQueue& blocks, DataFeed* feed);

/// Reads the lines of a thread's blocks one by one, and says what is wrong with them. One thread; what it refers to
/// must outlive it.
class LineReader {
 public:
  LineReader(const LineBlockQueue& blocks, BadLines& bad_lines) : blocks_(&blocks), bad_lines_(&bad_lines) {}

  /// Parses line `number` of the block's file by `feed`, into `sink` if it has one; a header gives no row. A bad line
  /// is told to `on_bad(error)`, then reported. What either refuses ends the reading, as does an error that says so.
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
  /// To be called when all lines of a pass were read: adds what those of the feed have named.
  void AddNames(const DataFeed& feed, PassStats* stats) const;

 private:
  /// Whether values are texts of columns with names; `feed` is a DataFeed, or has one (FeedRows).
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
  int64_t non_finite_ = 0;                                 ///< as the feed counted them up to the last line
  std::vector<std::pair<uint32_t, uint64_t>> form_lines_;  ///< by NumberForm::nth: the file and the line
};

/// What a pass met in its files. Rows, and what is counted by the threads that parsed them, are the caller's to add.
PassStats StatsOfFiles(const LineBlockQueue& blocks, const BadLines& bad_lines);

}  // namespace millrace
