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

/// The files of a dump, each written by a thread of its own, through dump_converter when there is one:
/// dump_fields_path/part-RANK-00000, -00001, ... (dump_file_num of them). RANK is mpi_rank or that of a job of ranks,
/// or user_define_dump_filename, behind which ranks but the first add theirs: part-NAME.rank-1-00000.
///
/// Lines that belong together go to one file. The first failure (a full disk, a converter that ends early or fails) is
/// what later calls return. Threads and commands end with Finish, or with the object.
class DumpFiles {
 public:
  /// Makes the folder, opens the files and starts the commands. `append` keeps what the files hold, whatever
  /// dump_fields_mode says. `rank` is -1 in a job of one process. kIo.
  static Result<std::unique_ptr<DumpFiles>> Create(const TrainerDesc& desc, bool append, int rank);
  /// Kills commands that still run; without Finish the files lack what was waiting.
  ~DumpFiles();

  /// Hands whole lines to file number `turn` modulo the files. Any thread; waits while 16 hand-overs wait there.
  Status Write(int64_t turn, std::string lines);

  /// Ends the files and waits for their commands, after a request to `stop` for a second at most. One thread, once,
  /// when nobody writes.
  Status Finish(const std::stop_token& stop);

  /// Ends Writes that wait, and the commands: for a stop that they do not heed. Any thread.
  void Abandon();
  /// Whether a Write waits that did so at the last call, and none has ended since. One thread.
  bool IsHeldUp();
  bool abandoned() const { return abandoned_.stop_requested(); }

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  class Part;
  DumpFiles();

  std::vector<std::string> paths_;
  std::stop_source abandoned_;
  std::atomic<int64_t> begun_{0};  ///< Writes
  std::atomic<int64_t> ended_{0};
  int64_t ended_before_ = -1;  ///< at the last IsHeldUp that found one waiting
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace millrace
