#pragma once

#include <string>
#include <vector>

#include "runs/run_comparison.h"
#include "runs/run_folder.h"

namespace millrace {

/// Writes runs as a page of HTML that needs nothing beside it, no script and no other file: the table, and a chart a
/// metric with the curves of all runs, of evaluations thick and of training thin. Runs of one mean have one color. What
/// the runs bring along is shown as text, whatever it holds.
std::string RunsPage(const std::vector<RunRecord>& runs, const RunTable& table);

}  // namespace millrace
