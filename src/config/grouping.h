#pragma once

#include <vector>

#include "config/feed_names.h"

namespace millrace {

class DataFeedDesc;

/// How an in-memory dataset is asked to group its rows.
struct Grouping {
  bool merge_by_lineid = false;
  bool enable_pv_merge = false;
  bool joins = false;  ///< a phase of its passes hands out page views
};

/// Which of these, and of what `feed` says, do not go together; fields by their paths in a TrainerDesc. The check of a
/// job and the dataset itself, which Python may make without a job, both ask here.
std::vector<RefusedField> RefusedByGrouping(const DataFeedDesc& feed, const Grouping& grouping);

}  // namespace millrace
