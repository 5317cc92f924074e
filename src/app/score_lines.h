#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "job/environment.h"
#include "serving/predictor.h"

namespace millrace {

/// What `predictor` is asked to do.
struct ScoreRequest {
  std::string input = "-";                  ///< file, or "-" for standard input
  std::string output = "-";                 ///< file, "-" for standard output, or empty: nowhere
  std::optional<std::string> pipe_command;  ///< instead of the model's
  /// Commands that the description of lines names may run. Who scores says so, not the model: it may come from
  /// anywhere.
  bool allow_model_command = false;
  std::string format;   ///< of columns ("parquet"), in place of the model's; empty: that
  std::string without;  ///< slots that lines lack, comma-separated
  std::string compare;  ///< file with expected scores; empty: none
  double tolerance = 1e-6;
  int batch_size = 0;             ///< 0: the model's
  bool allow_non_finite = false;  ///< scores that are NaN or infinite are no failure
};

/// Scores every line of the input in order, one score a line in the shortest form that reads back alike. kInvalidConfig
/// for a slot of `without` that the score depends on, a format without columns, and a command that may not run;
/// kBadData when scores and expected ones differ, and, once all are written and without `allow_non_finite` and expected
/// ones, when some are NaN or infinite; kIo when the output cannot be written.
Status ScoreLines(const Predictor& predictor, const Environment& environment, const ScoreRequest& request,
                  std::stop_token stop);

}  // namespace millrace
