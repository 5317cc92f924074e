#pragma once

#include <cstddef>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// What every call returns after rank `rank` of `size` was lost: kUnavailable.
Status LostRank(int rank, int size);

/// kInternal when a job of `size` ranks has no rank `rank`; "sending to" says what wanted it.
Status CheckRank(const char* doing, int rank, int size);

/// kInternal when AllToAll among `size` ranks was given another number of strings.
Status CheckStrings(size_t strings, int size);

/// A collective that a rank calls: all have the same at a time.
struct CollectiveCall {
  std::string_view name;
  int root = 0;
  size_t values = 0;
};

/// kInternal when two ranks call different ones.
Status CheckSameCall(int rank, const CollectiveCall& call, int other_rank, const CollectiveCall& other);

/// kInternal when a rank wants to shrink whose calls have not failed.
Status CheckIsFailed(const Status& failure);

}  // namespace millrace
