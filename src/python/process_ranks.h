#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "framework.pb.h"
#include "ranks/collective_order.h"
#include "ranks/rank_group.h"

namespace millrace {

/// What a process has of the others that a launcher (mpirun) started: each runs the same script. A process that is
/// alone may use it from any thread, and in what it forks.
struct ProcessRanks {
  RankGroup* group;  ///< of a process that is alone for Agree and FromLeader: its sessions have groups of their own
  CollectiveOrder* script;  ///< null: the process is alone

  bool are_several() const { return script != nullptr; }
  /// What a session is given: null where the process is alone.
  RankGroup* of_session() const { return are_several() ? group : nullptr; }
  /// CollectiveOrder::Together without the GIL, which the caller holds; Ctrl-C ends it. Throws StatusError.
  std::vector<std::string> Together(std::string_view call, std::string_view mine = {}) const;
};

/// RankGroup::Agree likewise.
void AgreeOrThrow(const ProcessRanks& ranks, const Status& mine);
/// RunInterruptibly, on ranks by CollectiveOrder::ByLeader. Throws StatusError.
void RunByLeader(const ProcessRanks& ranks, const std::string& call,
                 const std::function<Status(const std::stop_token&)>& work);

/// Which tables a scope or a job has, where ranks know a table by its name: no other one in the process may have one of
/// that name meanwhile. Under the GIL.
class TablesOfRanks {
 public:
  TablesOfRanks() = default;
  ~TablesOfRanks();
  TablesOfRanks(const TablesOfRanks&) = delete;
  TablesOfRanks& operator=(const TablesOfRanks&) = delete;
  /// Where ranks are several, those of a program are this one's from now on; kAlreadyExists where another one has them.
  Status Own(const ProcessRanks& ranks, const ProgramDesc& program);
};

/// Files, by rank, that the ranks of a job share out: the list of all, or the lists one behind the other, where each
/// has its own. kInvalidConfig for lists that have some files in common.
Result<std::vector<std::string>> FilesOfRanks(const std::vector<std::vector<std::string>>& lists);

/// The ranks that this process is one of. The first call of a process that a launcher started begins MPI and waits for
/// the first calls of the others; from then on the process has it to its end. Under the GIL. Throws StatusError: where
/// MPI cannot begin at each call, and after Python's end has begun.
const ProcessRanks& RanksOfProcess();
/// A process that is alone, for what ranks do not do together.
const ProcessRanks& AloneInProcess();

/// For Python's atexit: waits for the other ranks, which may still ask for rows, and ends MPI. A script that failed
/// does not wait, so that those who wait for it fail.
void EndRanksOfProcess();

}  // namespace millrace
