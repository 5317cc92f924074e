#pragma once

#include <cstddef>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// The failure of every call after rank `rank` of `size` was lost: kUnavailable.
Status LostRank(int rank, int size);

/// Fails with kInternal if a job of `size` ranks has no rank `rank`; `doing` is the action, "sending to".
Status CheckRank(const char* doing, int rank, int size);

/// Fails with kInternal if `strings` is not `size`, for AllToAll.
Status CheckStrings(size_t strings, int size);

/// A rank's collective call, which must match that of the others.
struct CollectiveCall {
  std::string_view name;
  int root = 0;
  size_t values = 0;
};

/// Fails with kInternal if two ranks call different ones.
Status CheckSameCall(int rank, const CollectiveCall& call, int other_rank, const CollectiveCall& other);

/// Fails with kInternal if a rank calls Shrink without a failure.
Status CheckIsFailed(const Status& failure);

}  // namespace millrace
