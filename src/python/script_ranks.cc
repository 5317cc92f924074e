#include "python/script_ranks.h"

#include <pybind11/pybind11.h>

#include "comm/mpi_plugin.h"

namespace py = pybind11;

namespace millrace {
namespace {

void Flush(const char* stream) {
  try {
    py::module_::import("sys").attr(stream).attr("flush")();
  } catch (const py::error_already_set&) {  // NOLINT(bugprone-empty-catch): there may be none, or it is closed
  }
}

}  // namespace

const ProcessRanks& RanksOfScript() {
  if (!StartedByLauncher()) return SoloProcess();
  const ProcessRanks* ranks = nullptr;
  WithoutGil([&ranks] { ranks = ValueOrThrow(RanksOfProcess()); });
  return *ranks;
}

void EndRanksOfScript() {
  if (!HasRanksToEnd()) return;
  // The launcher may end all ranks as soon as one of them has failed: what to say is said before.
  Flush("stdout");
  Flush("stderr");
  const bool has_failed = py::hasattr(py::module_::import("sys"), "last_type");
  if (!has_failed) RunInterruptibly(WaitForRanksAtEnd);
  WithoutGil(EndRanksOfProcess);
}

}  // namespace millrace
