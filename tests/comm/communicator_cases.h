#pragma once

#include <functional>
#include <ostream>
#include <vector>

#include "comm/communicator.h"

namespace millrace {

/// A test of communicators: every rank runs it with its own. It leaves no message under way and no receiver behind.
struct CommunicatorCase {
  const char* name;
  void (*run)(Communicator& comm);
  /// A rank has more threads in it than one: not for a SimulatedCluster.
  bool has_threads = false;
  /// Sends more than 64 MB.
  bool is_big = false;
};

const std::vector<CommunicatorCase>& CommunicatorCases();

/// The last rank is lost, then the last of those that are left, until there is one. `lose_me` ends the calling rank, or
/// lets it be lost and returns.
void RanksGoOnWithoutTheLast(Communicator& comm, const std::function<void()>& lose_me);

/// For Google Test, which otherwise prints its bytes.
inline void PrintTo(const CommunicatorCase& communicator_case, std::ostream* out) { *out << communicator_case.name; }

}  // namespace millrace
