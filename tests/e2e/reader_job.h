#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/file.h"

namespace millrace {

/// A folder with the points of configs/readers and copies of its jobs that train on them.
class ReaderJob {
 public:
  /// `rows` lines in each of two files.
  explicit ReaderJob(int rows);

  const std::string& folder() const { return folder_.path(); }
  std::string file(int number) const { return folder() + "/points-" + std::to_string(number) + ".csv"; }
  /// The labels of all rows in their order.
  const std::vector<int>& labels() const { return labels_; }

  /// Copies the job configs/readers/NAME.prototxt and its programs, with the folder's files; every key of `replaced`
  /// that occurs in them gives way to its value. Returns the job's path. `extra` is appended.
  std::string Copy(const std::string& name, const std::string& extra,
                   const std::map<std::string, std::string>& replaced = {}) const;
  /// Puts the step of a batch, which reads by itself here, in the place of the copied has_next's loop.
  void ReadWithoutLoop() const;

 private:
  TempDir folder_;
  std::vector<int> labels_;
};

/// Every occurrence of `from` becomes `to`.
std::string Replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace millrace
