#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "job/run_hooks.h"
#include "report/run_summary.h"

namespace millrace {

/// What millrace.Report is made of: run.json's numbers, with NaN where JSON has null.
pybind11::dict ReportDict(const RunSummary& summary);

/// What was measured on each evaluation set that has a name, by it.
pybind11::dict SetsDict(const EvalReport& report);

/// Its history: {"step", "batch", a label: array} for each line.
pybind11::list HistoryList(const std::vector<FetchLine>& lines);

}  // namespace millrace
