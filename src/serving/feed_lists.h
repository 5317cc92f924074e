#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "data_feed.pb.h"
#include "framework.pb.h"

namespace millrace {

/// One way to feed a trained model: the executed part of its program, and the format of its input lines.
struct FeedList {
  ProgramDesc program;
  std::vector<std::string> vars;  ///< fed variables, in the order of `data_desc`
  DataFeedDesc data_desc;
};

/// Feeds slots, with the line format of training. Fails with kInvalidConfig for a target that no operator computes, and
/// for variables that are neither slots of `data_desc` nor computed.
Result<FeedList> OfflineFeed(const ProgramDesc& forward, const std::vector<std::string>& targets,
                             const DataFeedDesc& data_desc);

/// Feeds the variables in `pooled` that the targets depend on, each a dense float slot, and then the slots that the
/// rest of the program reads. Fails like OfflineFeed.
Result<FeedList> OnlineFeed(const ProgramDesc& forward, const std::vector<std::string>& targets,
                            const std::vector<std::string>& pooled, const DataFeedDesc& data_desc);

}  // namespace millrace
