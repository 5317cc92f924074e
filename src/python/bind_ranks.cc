#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <string_view>
#include <vector>

#include "python/bindings.h"
#include "python/script_ranks.h"

namespace py = pybind11;

namespace millrace {
namespace {

int Rank() { return RanksOfScript().group->rank(); }

int Size() { return RanksOfScript().group->size(); }

/// What every rank brought to its next call of that name, by rank.
std::vector<py::bytes> Together(const std::string& call, const std::string& mine) {
  const auto all =
      RunCall([&](const CallContext& context) { return context.ranks.Together(call, mine, context.stop); });
  return {all.begin(), all.end()};
}

}  // namespace

void BindRanks(py::module_& module) {
  module.def("rank", &Rank);
  module.def("ranks", &Size);
  module.def("together", &Together, py::arg("call"), py::arg("mine"));
}

}  // namespace millrace
