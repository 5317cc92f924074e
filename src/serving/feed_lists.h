#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "data_feed.pb.h"
#include "framework.pb.h"

namespace millrace {

/// One way to feed a trained model: the part of its program that is run, and how input lines hold what it reads.
struct FeedList {
  ProgramDesc program;
  std::vector<std::string> vars;  ///< that are fed, in the order of `data_desc`
  DataFeedDesc data_desc;
};

/// Fed with slots, on lines as in training. kInvalidConfig for a target that nothing computes, and for variables that
/// are neither slots of `data_desc` nor computed.
Result<FeedList> OfflineFeed(const ProgramDesc& forward, const std::vector<std::string>& targets,
                             const DataFeedDesc& data_desc);

/// Fed with the variables `pooled` (those of them that the targets depend on), each a dense float slot of its lines,
/// and then with the slots that the rest of the program reads. As OfflineFeed for errors.
Result<FeedList> OnlineFeed(const ProgramDesc& forward, const std::vector<std::string>& targets,
                            const std::vector<std::string>& pooled, const DataFeedDesc& data_desc);

}  // namespace millrace
