#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runs/run_folder.h"

namespace millrace {

/// A value of the table of runs.
struct RunCell {
  std::string text;  ///< "0.8123", "0.8123 +- 0.0004", "[64, 32]"; empty: there is none
  bool is_best = false;
};

/// A line of the table of runs: of one run, or of the mean over runs whose jobs differ in the seed alone. The runs of a
/// mean follow it.
struct RunRow {
  std::string name;
  std::vector<size_t> runs;  ///< numbers of those that it is about
  bool is_member = false;    ///< of the mean above it
  std::vector<RunCell> cells;
};

/// Runs beside each other.
struct RunTable {
  std::vector<std::string> heads;  ///< of the cells
  size_t fields = 0;               ///< the first cells, which are fields of the jobs
  std::vector<std::string> paths;  ///< of the fields, which heads are short for: "model.optimizer.adagrad.lr"
  std::string order_by;            ///< the head that rows are ordered by; empty: none
  std::vector<RunRow> rows;
  std::vector<std::string> notes;  ///< what is to be known of the numbers
};

/// The last names of paths, as many as tell them apart: "lr" of "model.optimizer.adagrad.lr".
std::vector<std::string> ShortPaths(const std::vector<std::string>& paths);

/// Puts runs beside each other: the fields in which their jobs, as they were written, differ, how long they took, and
/// each metric of the saved model's and of their best evaluation, or, where no run has any, of training. What is best
/// of a column is marked, among means and runs that are in none. Where runs are no more than seeds apart, they follow
/// their mean with its standard error. `order_by` is a metric whose best value comes first; empty: in the order of
/// `runs`. kInvalidConfig when no run has that metric.
Result<RunTable> CompareRuns(const std::vector<RunRecord>& runs, const std::string& order_by = "");

}  // namespace millrace
