#pragma once

#include <string_view>

#include "core/status.h"
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
/// Parses the first line of a file, which `parser` does not see when it is a header.
template <class Parser, class... Sink>
Result<LineResult> ParseFirstLine(const LineBlock& block, std::string_view line, Parser& parser, Sink&... sink) {
  if (block.header != nullptr) return LineResult::kBlank;
  return parser.ParseLine(block.has_sizes ? line : WithoutByteOrderMark(line), sink...);
}

/// What a pass met in its files. Rows, and what is counted by the threads that parsed them, are the caller's to add.
PassStats StatsOfFiles(const LineBlockQueue& blocks, const BadLines& bad_lines);

}  // namespace millrace
