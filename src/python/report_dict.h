#pragma once

#include <pybind11/pybind11.h>

#include "trainer/run_summary.h"

namespace millrace {

/// What millrace.Report is made of: run.json's numbers, with NaN where JSON has null.
pybind11::dict ReportDict(const RunSummary& summary);

}  // namespace millrace
