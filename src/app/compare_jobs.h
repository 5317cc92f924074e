#pragma once

#include "core/status.h"

namespace millrace {

/// Compares jobs for the scripts of python/runs, which do not read prototxt. Each line of standard input is a JSON list
/// of jobs in text format. For each, a line of standard output shows their seeds, null for a text that is not a job of
/// this build, and the fields in which the others differ, as they were written, but for output.dir:
///
///     {"seeds":[1,7],"fields":[{"path":"model.optimizer.adagrad.lr","head":"lr","values":["0.1","0.2"]}]}
///
/// kBadData for other lines, kIo.
Status CompareJobs();

}  // namespace millrace
