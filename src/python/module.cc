// The extension module millrace._millrace: the edge between Python and the rooms. python/millrace has what users call.

#include "app/default_environment.h"
#include "python/bindings.h"
#include "python/errors.h"

namespace millrace {

const Environment& SharedEnvironment() {
  static const Environment* const environment = new Environment(ValueOrThrow(MakeDefaultEnvironment()));
  return *environment;
}

}  // namespace millrace

PYBIND11_MODULE(_millrace, module) {
  module.doc() = "Millrace's rooms as Python sees them; use the package millrace.";
  module.attr("__version__") = MILLRACE_VERSION;
  millrace::RegisterErrors();
  millrace::BindJob(module);
  millrace::BindPredictor(module);
  millrace::BindProgram(module);
  millrace::BindQueue(module);
  millrace::BindSession(module);
}
