#pragma once

#include <string>

#include "core/file.h"

namespace millrace {

/// Folders that look as trainings leave them.
class WrittenRuns {
 public:
  WrittenRuns() : folder_(TempDir::Create("runs").value()) {}

  /// Writes a file of a run, and returns its folder.
  std::string Write(const std::string& run, const std::string& file, const std::string& text) const;
  /// A run of two evaluations whose job has these fields, in text format.
  std::string WriteRun(const std::string& run, const std::string& job, double first_auc, double last_auc) const;

  std::string folder(const std::string& run) const { return folder_.path() + "/" + run; }

 private:
  TempDir folder_;
};

}  // namespace millrace
