#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"

namespace millrace {

/// A folder with a generated log and jobs that train on it.
class SmallJob {
 public:
  /// Lines "1 LABEL 1 1 1 UID 1 A 2 B B": labels follow A, every UID occurs once (line numbers from 1).
  /// `format`: that of the files, and data_desc.name of the jobs (WriteFormat); empty: MultiSlot text.
  explicit SmallJob(int lines, int files = 3, const std::string& format = "");

  const std::string& folder() const { return folder_.path(); }
  std::vector<std::string> files() const;
  int lines() const { return lines_; }

  /// Writes a job file and returns its path. `extra` is appended to the text, and all files unless it names some.
  /// Deep: two tables, fully connected layers, Adagrad.
  std::string DeepJob(const std::string& extra) const;
  /// DeepJob with rows so wide that 300 of them are 38 MB in a checkpoint: it has more files than one of the table.
  std::string WideJob(const std::string& extra) const;
  /// A table with an accessor, as Paddle's parameter server has them, fully connected layers.
  std::string CtrJob(const std::string& extra) const;
  /// How often the log shows each id of A and B, and how often where the label is 1, times `epochs`: what a CtrJob
  /// counts with `table { key: ID }`.
  std::map<uint64_t, std::pair<float, float>> Counts(int epochs) const;
  /// ScopedCounters: batches of one row; a row of the only table is 0 before, 0.5 after its line was trained once, 0.75
  /// after twice. The score of a line is its row.
  std::string CountingJob(const std::string& extra) const;

 private:
  std::string Write(const std::string& name, const std::string& text) const;

  TempDir folder_;
  std::string DataDesc(int batch_size) const;

  int lines_;
  int files_;
  std::string format_;
};

/// Shows and clicks of each row of a saved table with an accessor, of one file.
std::map<uint64_t, std::pair<float, float>> CountsIn(const std::string& file);

/// Checkpoints of a run that have `path` below them, and how many there are in all.
std::pair<int, int> CountCheckpointsWith(const std::string& out, const std::string& path);

/// Every file below a folder: names and bytes, one string each.
std::vector<std::string> FolderContent(const std::string& folder);

}  // namespace millrace
