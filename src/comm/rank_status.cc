#include "comm/rank_status.h"

#include <string>

namespace millrace {
namespace {

std::string Describe(int rank, const CollectiveCall& call) {
  return "rank " + std::to_string(rank) + " " + std::string(call.name) + " (root " + std::to_string(call.root) + ", " +
         std::to_string(call.values) + " values)";
}

}  // namespace

Status LostRank(int rank, int size) {
  return Unavailable("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                     " is lost: it ended, or cannot be reached any more");
}

Status CheckRank(const char* doing, int rank, int size) {
  if (rank >= 0 && rank < size) return Status::Ok();
  return Internal(std::string(doing) + " rank " + std::to_string(rank) + ": the job has ranks 0 to " +
                  std::to_string(size - 1));
}

Status CheckStrings(size_t strings, int size) {
  if (strings == static_cast<size_t>(size)) return Status::Ok();
  return Internal("AllToAll among " + std::to_string(size) + " ranks got " + std::to_string(strings) + " strings");
}

Status CheckSameCall(int rank, const CollectiveCall& call, int other_rank, const CollectiveCall& other) {
  if (call.name == other.name && call.root == other.root && call.values == other.values) return Status::Ok();
  return Internal("ranks call different collectives: " + Describe(rank, call) + ", " + Describe(other_rank, other));
}

Status CheckIsFailed(const Status& failure) {
  return failure.ok() ? Internal("ranks cannot go on without a lost one: none is lost") : Status::Ok();
}

}  // namespace millrace
