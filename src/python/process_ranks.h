#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dist/rank_group.h"
#include "dist/rank_script.h"

namespace millrace {

/// What a process that a launcher (mpirun) started has of the others: each runs the same script.
struct ProcessRanks {
  RankGroup* group;
  RankScript* script;

  /// RankScript::Together without the GIL, which the caller holds; Ctrl-C ends it. Throws StatusError.
  std::vector<std::string> Together(std::string_view call, std::string_view mine = {}) const;
};

/// The ranks that this process is one of; null where no launcher started it, or started it alone. The first call begins
/// MPI and waits for the first calls of the others; from then on the process has it to its end. Under the GIL. Throws
/// StatusError: where MPI cannot begin at each call, and after Python's end has begun.
const ProcessRanks* RanksOfProcess();

/// For Python's atexit: waits for the other ranks, which may still ask for rows, and ends MPI. A script that failed
/// does not wait, so that those who wait for it fail.
void EndRanksOfProcess();

}  // namespace millrace
