#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "framework.pb.h"
#include "ranks/rank_group.h"
#include "ranks/rank_script.h"

namespace millrace {

/// What a process that a launcher (mpirun) started has of the others: each runs the same script.
struct ProcessRanks {
  RankGroup* group;
  RankScript* script;

  /// RankScript::Together without the GIL, which the caller holds; Ctrl-C ends it. Throws StatusError.
  std::vector<std::string> Together(std::string_view call, std::string_view mine = {}) const;
};

/// RankGroup::Agree likewise; with null `mine` alone counts.
void AgreeOrThrow(const ProcessRanks* ranks, const Status& mine);
/// RunInterruptibly, on ranks by RankScript::ByLeader. Throws StatusError.
void RunByLeader(const ProcessRanks* ranks, const std::string& call,
                 const std::function<Status(const std::stop_token&)>& work);

/// Which tables a scope or a job has, where ranks know a table by its name: no other one in the process may have one of
/// that name meanwhile. Under the GIL.
class TablesOfRanks {
 public:
  TablesOfRanks() = default;
  ~TablesOfRanks();
  TablesOfRanks(const TablesOfRanks&) = delete;
  TablesOfRanks& operator=(const TablesOfRanks&) = delete;
  /// Those of a program are this one's from now on; kAlreadyExists where another one has them.
  Status Own(const ProgramDesc& program);
};

/// Files, by rank, that the ranks of a job share out: the list of all, or the lists one behind the other, where each
/// has its own. kInvalidConfig for lists that have some files in common.
Result<std::vector<std::string>> FilesOfRanks(const std::vector<std::vector<std::string>>& lists);

/// The ranks that this process is one of; null where no launcher started it, or started it alone. The first call begins
/// MPI and waits for the first calls of the others; from then on the process has it to its end. Under the GIL. Throws
/// StatusError: where MPI cannot begin at each call, and after Python's end has begun.
const ProcessRanks* RanksOfProcess();

/// For Python's atexit: waits for the other ranks, which may still ask for rows, and ends MPI. A script that failed
/// does not wait, so that those who wait for it fail.
void EndRanksOfProcess();

}  // namespace millrace
