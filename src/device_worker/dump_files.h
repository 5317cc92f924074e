#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace millrace {

class TrainerDesc;

/// The files of a dump, each written by its own thread, through dump_converter if set:
/// dump_fields_path/part-RANK-00000, -00001, ... (dump_file_num files). RANK is mpi_rank or a rank of the job, or
/// user_define_dump_filename, to which ranks except the first append theirs: part-NAME.rank-1-00000.
///
/// Related lines go to one file. After the first failure (a full disk, a converter that fails or ends early), later
/// calls return it. Threads and commands end with Finish or with the object.
class DumpFiles {
 public:
  /// Creates the folder, opens the files and starts the commands. `append` keeps the files' content regardless of
  /// dump_fields_mode. `rank` is -1 in a single-process job. Fails with kIo if a file or folder cannot be created or a
  /// command does not start.
  static Result<std::unique_ptr<DumpFiles>> Create(const TrainerDesc& desc, bool append, int rank);
  /// Kills running commands; without Finish, the files lack queued lines.
  ~DumpFiles();

  /// Queues whole lines for file number `turn` modulo the number of files. Any thread; waits while 16 pieces are queued
  /// there. Fails with the first failure of the file, kCancelled after Abandon.
  Status Write(int64_t turn, std::string lines);

  /// Completes the files and waits for their commands, at most one second after a request to `stop`. Called once, by
  /// one thread, after all Writes. Fails with kIo if a file could not be written or a converter failed, kUnavailable if
  /// a converter did not end in time.
  Status Finish(const std::stop_token& stop);

  /// Unblocks waiting Writes and kills the commands, if they do not react to a stop. Any thread.
  void Abandon();
  /// Whether a Write was waiting at the last call already and none has ended since. One thread.
  bool IsHeldUp();
  bool abandoned() const { return abandoned_.stop_requested(); }

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  class Part;
  DumpFiles();

  std::vector<std::string> paths_;
  std::stop_source abandoned_;
  std::atomic<int64_t> begun_{0};  ///< Writes started
  std::atomic<int64_t> ended_{0};
  int64_t ended_before_ = -1;  ///< at the last IsHeldUp that found one waiting
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace millrace
