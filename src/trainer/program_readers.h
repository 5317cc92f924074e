#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "job/compiled_job.h"
#include "reader/reader_holder.h"
#include "trainer/training_run.h"

namespace millrace {

/// The readers that a job's program reads, which its startup program made in the root scope. One thread at a time.
class ProgramReaders {
 public:
  /// kInvalidConfig names a reader that no operator made. The scope outlives what comes back.
  static Result<ProgramReaders> Find(const Executable& program, Scope& root);

  /// Whether every reader that a `read` takes from has another item, which is read ahead to know. Failures name the
  /// reader; kCancelled at a stop request.
  Result<bool> HasNext(const std::stop_token& stop);
  /// As above, of one of the readers.
  Result<bool> HasNext(const std::string& reader, const std::stop_token& stop);
  Status StartOver();
  /// Whether a reader has delivered anything since it was made, or started over.
  bool WasRead() const;
  /// How often the reader was started over that was most often.
  int64_t resets() const;
  ReaderCounts Counts() const;

  std::vector<ReaderState> Positions() const;
  /// Brings the readers, which are new, to where others stood; kInvalidConfig names one that the program has not.
  Status MoveTo(const std::vector<ReaderState>& saved, const std::stop_token& stop);
  /// kBadData for a training in which no step found anything to read.
  Status NothingToTrainOn() const;

 private:
  struct Reader {
    std::string name;
    ReaderHolder* holder = nullptr;
    bool is_read = false;  ///< by a `read`
  };
  /// Null: there is none of that name.
  const Reader* Named(const std::string& name) const;

  std::vector<Reader> readers_;
};

/// Leaves a run without checkpoints where an operator of `frame`, the job's, reads data by itself and does not say how
/// far; kInvalidConfig where somebody asked for some.
Status CheckSources(const CompiledJob& job, const Frame& frame, TrainingRun* run);

}  // namespace millrace
