#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <string_view>
#include <vector>

#include "python/bindings.h"
#include "python/process_ranks.h"

namespace py = pybind11;

namespace millrace {
namespace {

int Rank() { return RanksOfProcess().group->rank(); }

int Size() { return RanksOfProcess().group->size(); }

/// What every rank brought to its next call of that name, by rank.
std::vector<py::bytes> Together(const std::string& call, const std::string& mine) {
  std::vector<py::bytes> all;
  for (const std::string& one : RanksOfProcess().Together(call, mine)) all.emplace_back(one);
  return all;
}

}  // namespace

void BindRanks(py::module_& module) {
  module.def("rank", &Rank);
  module.def("ranks", &Size);
  module.def("together", &Together, py::arg("call"), py::arg("mine"));
}

}  // namespace millrace
