#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "framework.pb.h"

namespace millrace {

/// What a saved inference program is fed with and asked for, in the order of a caller's lists.
struct FeedFetch {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
};

/// Takes the feed and fetch operators and their holders out of block 0 of `program`. kInvalidConfig for an operator
/// that names no variable or no column.
Result<FeedFetch> TakeFeedFetch(ProgramDesc& program);

/// Puts feed operators before and fetch operators after the others of block 0, with their holders, as
/// paddle.static.save_inference_model does.
void AddFeedFetch(const FeedFetch& lists, ProgramDesc& program);

}  // namespace millrace
