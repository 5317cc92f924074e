#pragma once

#include <string>
#include <vector>

namespace millrace {

/// Runs a job to its end, which succeeds.
void TrainToTheEnd(const std::string& job, const std::string& out);
/// Runs a job, killed after a random number of printed lines again and again, at last to its end.
void TrainKilled(const std::string& job, const std::string& out, int kills, int most_lines);
/// All of a model but MODEL, which names the format of its lines.
std::vector<std::string> ParametersOf(const std::string& model);

}  // namespace millrace
