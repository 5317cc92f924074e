#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "serving/predictor.h"
#include "trainer/environment.h"

namespace millrace {

/// What `predictor` is asked to do.
struct ScoreRequest {
  std::string input = "-";                  ///< file, or "-" for standard input
  std::string output = "-";                 ///< file, "-" for standard output, or empty: nowhere
  std::optional<std::string> pipe_command;  ///< instead of the model's
  std::string without;                      ///< slots that lines lack, comma-separated
  std::string compare;                      ///< file with expected scores; empty: none
  double tolerance = 1e-6;
  int batch_size = 0;  ///< 0: the model's
};

/// Scores every line of the input in order, one score a line in the shortest form that reads back alike. kInvalidConfig
/// for a slot of `without` that the score depends on; kBadData when scores and expected ones differ; kIo when the
/// output cannot be written.
Status ScoreLines(const Predictor& predictor, const Environment& environment, const ScoreRequest& request,
                  std::stop_token stop);

}  // namespace millrace
