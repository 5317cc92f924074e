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

/// The ranks of a script: the processes that a launcher (mpirun) started, each of which runs the same script. A process
/// without others is a group of one, which can be used from any thread and in forked processes.
struct ProcessRanks {
  RankGroup* group;  ///< a solo process uses it only for Agree and FromLeader: its sessions have groups of their own
  CollectiveOrder* order;  ///< null for a solo process

  bool are_several() const { return order != nullptr; }
  /// The ranks to pass to a session: null for a solo process.
  RankGroup* of_session() const { return are_several() ? group : nullptr; }
  /// CollectiveOrder::Together, with its errors. A solo process gets `mine` back.
  Result<std::vector<std::string>> Together(std::string_view call, std::string_view mine,
                                            const std::stop_token& stop) const;
  /// The same for calls that bring nothing.
  Status Together(std::string_view call, const std::stop_token& stop) const;
  /// CollectiveOrder::ByLeader, with its errors. A solo process runs `work`.
  Status ByLeader(const std::string& call, const std::function<Status()>& work, const std::stop_token& stop) const;
};

/// The tables of a scope or a job. Ranks identify a table by name, so each name has one owner per process. Thread-safe.
class TableOwner {
 public:
  TableOwner() = default;
  ~TableOwner();
  TableOwner(const TableOwner&) = delete;
  TableOwner& operator=(const TableOwner&) = delete;
  /// With several ranks, claims the tables of a program until this object is destroyed. kAlreadyExists if another
  /// owner has one of them.
  Status Own(const ProcessRanks& ranks, const ProgramDesc& program);
};

/// The files of a job, which its ranks share: the common list, or all lists concatenated in rank order if each rank has
/// files of its own. `lists` is indexed by rank. kInvalidConfig if different lists share a file.
Result<std::vector<std::string>> FilesOfRanks(const std::vector<std::vector<std::string>>& lists);

/// The ranks of this process, for the process's lifetime. In a process started by a launcher, the first call starts MPI
/// and blocks until all ranks have called it. kUnavailable in a forked process of a rank and after EndRanksOfProcess;
/// the errors of OpenMpi, on every call. Thread-safe.
Result<const ProcessRanks*> RanksOfProcess();
/// A solo process, for calls that ranks do not make together.
const ProcessRanks& SoloProcess();

/// Whether this process has ranks to end with the functions below.
bool HasRanksToEnd();
/// Waits for the other ranks, which can still request rows. Skip it after a failure: ranks that wait for this one then
/// fail as well.
void WaitForRanksAtEnd(const std::stop_token& stop);
/// Ends MPI, on the thread that made the first call of RanksOfProcess.
void EndRanksOfProcess();

}  // namespace millrace
