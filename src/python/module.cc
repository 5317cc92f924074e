// The extension module millrace._millrace: the edge between Python and the rooms. python/millrace has what users call.

#include <memory>
#include <string>
#include <vector>

#include "core/harmless_text.h"
#include "core/version.h"
#include "datafeed/cell_records.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/interruptible.h"
#include "python/output.h"
#include "python/script_ranks.h"
#include "trainer/default_environment.h"

namespace millrace {

namespace {

/// What SharedEnvironment returns. Those that were replaced stay: programs that are running refer to them.
std::vector<std::unique_ptr<const Environment>>& Environments() {
  static auto* const environments = new std::vector<std::unique_ptr<const Environment>>;
  return *environments;
}

/// Adds what a plugin brings for all that is made from now on. One that is loaded already is left alone, so that a cell
/// of a notebook may be run again.
void LoadSharedPlugin(const std::string& path) {
  const Environment& now = SharedEnvironment();
  if (HasPlugin(now, path)) return;
  auto made = std::make_unique<Environment>(CopyOf(now));
  ThrowUnlessOk(AddPlugin(path, made.get()));
  Environments().push_back(std::move(made));
}

void NameThisPython() {
  const pybind11::object executable = pybind11::module_::import("sys").attr("executable");
  if (pybind11::isinstance<pybind11::str>(executable)) SetPythonOfCells(executable.cast<std::string>());
}

}  // namespace

const Environment& SharedEnvironment() {
  auto& environments = Environments();
  if (environments.empty()) {
    auto made = std::make_unique<Environment>(ValueOrThrow(MakeDefaultEnvironment()));
    made->ops.set_plugin_advice("millrace.load_plugin(FILE) loads a plugin");
    environments.push_back(std::move(made));
  }
  return *environments.back();
}

}  // namespace millrace

PYBIND11_MODULE(_millrace, module) {
  module.doc() = "Millrace's rooms as Python sees them; use the package millrace.";
  module.attr("__version__") = millrace::MillraceVersion();
  millrace::RegisterErrors();
  millrace::TakeWords();
  millrace::NameThisPython();
  module.def("load_plugin", &millrace::LoadSharedPlugin);
  module.def("check_feed_type", [](const std::string& name) {
    millrace::ThrowUnlessOk(millrace::SharedEnvironment().feeds.CheckName(name));
  });
  module.def("harmless", [](const std::string& text) { return millrace::Harmless(text, "\n\t"); });
  module.def("workers_made", &millrace::WorkersMade);
  millrace::BindFrame(module);
  millrace::BindJob(module);
  millrace::BindPredictor(module);
  millrace::BindProgram(module);
  millrace::BindQueue(module);
  millrace::BindRanks(module);
  millrace::BindSession(module);
  const auto at_exit = [](void (*end)()) {
    pybind11::module_::import("atexit").attr("register")(pybind11::cpp_function(end));
  };
  // The last one comes first: what runs may need the other ranks.
  at_exit(&millrace::EndRanksOfScript);
  at_exit(&millrace::StopCallsOfDaemons);
}
