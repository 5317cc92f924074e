#pragma once

#include <pybind11/pybind11.h>

#include "job/environment.h"

namespace millrace {

/// Everything that jobs of this process may use by name; made at the first call, and lives for ever. load_plugin puts
/// one that has more in its place. Thread-safe while the GIL is held.
const Environment& SharedEnvironment();

// What each part of the module has to offer; module.cc is the table of contents.
void BindFrame(pybind11::module_& module);
void BindJob(pybind11::module_& module);
void BindPredictor(pybind11::module_& module);
void BindProgram(pybind11::module_& module);
void BindQueue(pybind11::module_& module);
void BindRanks(pybind11::module_& module);
void BindSession(pybind11::module_& module);

}  // namespace millrace
