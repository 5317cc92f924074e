#include "python/process_ranks.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "comm/mpi_plugin.h"
#include "python/errors.h"
#include "python/interruptible.h"

namespace py = pybind11;

namespace millrace {
namespace {

struct Opened {
  pid_t process = 0;  ///< that opened it: what it forks is no rank
  Status status;
  std::unique_ptr<Communicator> communicator;  ///< null before and after
  std::unique_ptr<RankGroup> group;
  std::unique_ptr<RankScript> script;
  std::optional<ProcessRanks> ranks;  ///< where there are several
};

/// Lives for ever, as tables of scopes do that Python does not destroy.
Opened*& OfProcess() {
  static Opened* opened = nullptr;
  return opened;
}

Status Open(Opened* opened) {
  MR_ASSIGN(opened->communicator, OpenMpi());
  opened->group = std::make_unique<RankGroup>(*opened->communicator);
  opened->script = std::make_unique<RankScript>(opened->group->calls());
  // None may send what another one does not know of yet.
  MR_TRY(opened->communicator->Barrier());
  if (opened->communicator->size() > 1) opened->ranks = {opened->group.get(), opened->script.get()};
  return Status::Ok();
}

void Flush(const char* stream) {
  try {
    py::module_::import("sys").attr(stream).attr("flush")();
  } catch (const py::error_already_set&) {  // NOLINT(bugprone-empty-catch): there may be none, or it is closed
  }
}

}  // namespace

std::vector<std::string> ProcessRanks::Together(std::string_view call, std::string_view mine) const {
  std::vector<std::string> all;
  RunInterruptibly([&](const std::stop_token& stop) { ThrowUnlessOk(script->Together(call, mine, &all, stop)); });
  return all;
}

const ProcessRanks* RanksOfProcess() {
  Opened*& opened = OfProcess();
  if (opened == nullptr) {
    if (!StartedByLauncher()) return nullptr;
    opened = new Opened;
    opened->process = ::getpid();
    WithoutGil([&] { opened->status = Open(opened); });
  }
  if (opened->process != ::getpid()) {
    throw StatusError(Unavailable("a process that a rank forked is no rank: train in the process that mpirun started"));
  }
  ThrowUnlessOk(opened->status);
  if (!opened->ranks.has_value()) return nullptr;
  if (opened->communicator == nullptr) throw StatusError(Unavailable("the script is over, and so are its ranks"));
  return &*opened->ranks;
}

void EndRanksOfProcess() {
  Opened* const opened = OfProcess();
  if (opened == nullptr || opened->communicator == nullptr || opened->process != ::getpid()) return;
  // The launcher may end all ranks as soon as one of them has failed: what to say is said before.
  Flush("stdout");
  Flush("stderr");
  const bool has_failed = py::hasattr(py::module_::import("sys"), "last_type");
  std::vector<std::string> all;
  if (opened->ranks.has_value() && !has_failed) {
    try {
      opened->ranks->Together("the end of the script");
    } catch (const StatusError&) {  // NOLINT(bugprone-empty-catch): the others say what went wrong
    }
  }
  WithoutGil([&] { opened->communicator.reset(); });
}

}  // namespace millrace
