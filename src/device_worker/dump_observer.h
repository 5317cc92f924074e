#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device_worker/device_worker.h"
#include "device_worker/dump_files.h"
#include "runtime/transfer.h"

namespace millrace {

class TrainerDesc;

/// Dumps what a batch left in the variables of dump_fields, a line a row, and the parameters of dump_param, as Paddle
/// writes them:
///
///     INS_ID<tab>CONTENT<tab>NAME:LENGTH:v,v,v<tab>NAME:LENGTH:v...
///     (0,BATCH,NAME)v,v,v
///
/// (lines of a QueueDataset whose examples have no names begin with the tab before the first NAME) or, with
/// is_dump_in_simple_mode, the values alone: v v<tab>v v. Parameters are those of worker 0, after each of its batches
/// (from 0, of the pass), or, with dist { update: SYNC }, as each step of all ranks used them, where BATCH is how many
/// batches of all came before it.
class DumpObserver final : public BatchObserver {
 public:
  /// kInvalidConfig for names that the frame does not have, and parameters that are no tensors. `files` and `frame`
  /// outlive the observer. `worker` counts on over the ranks of a job.
  static Result<std::unique_ptr<DumpObserver>> Create(const TrainerDesc& desc, const Executable& executable,
                                                      const Frame& frame, int worker, DumpFiles& files);
  Status OnBatch(const TrainedBatch& trained) override;

 private:
  struct Field {
    std::string name;
    const Variable* variable = nullptr;
    bool told = false;  ///< that it has no rows
  };
  DumpObserver(const TrainerDesc& desc, int worker, DumpFiles& files) : desc_(&desc), worker_(worker), files_(&files) {}

  void ChooseRows(const TrainedBatch& trained);
  Status AddRows(const TrainedBatch& trained, std::string* lines);
  Status AddField(Field& field, int rows);
  Status AddParameters(const TrainedBatch& trained, std::string* lines);

  const TrainerDesc* desc_;
  int worker_;
  DumpFiles* files_;
  std::vector<Field> fields_;
  std::vector<Field> parameters_;
  HostView host_view_;
  std::vector<char> chosen_;        ///< by row
  std::vector<std::string> texts_;  ///< by row
};

}  // namespace millrace
