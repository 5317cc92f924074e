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

/// Dumps the variables of dump_fields after a batch, one line per row, and the parameters of dump_param, in Paddle's
/// format:
///
///     INS_ID<tab>CONTENT<tab>NAME:LENGTH:v,v,v<tab>NAME:LENGTH:v...
///     (0,BATCH,NAME)v,v,v
///
/// Lines of a QueueDataset without example names start with the tab before the first NAME. With is_dump_in_simple_mode,
/// lines contain only values: v v<tab>v v. Parameters are those of worker 0 after each of its batches (numbered from 0
/// per pass), or, with dist { update: SYNC }, those that all ranks used in each step, where BATCH counts the batches of
/// all ranks before it.
class DumpObserver final : public BatchObserver {
 public:
  /// `files` and `frame` must outlive the observer. `worker` is numbered over all ranks of a job. Fails with
  /// kInvalidConfig for names that the frame lacks, and for parameters that are not tensors. OnBatch fails like
  /// DumpFiles::Write.
  static Result<std::unique_ptr<DumpObserver>> Create(const TrainerDesc& desc, const Executable& executable,
                                                      const Frame& frame, int worker, DumpFiles& files);
  Status OnBatch(const TrainedBatch& trained) override;

 private:
  struct Field {
    std::string name;
    const Variable* variable = nullptr;
    bool told = false;  ///< logged that it has no rows
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
