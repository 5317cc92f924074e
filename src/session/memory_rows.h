#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "config/trainer_desc_reader.h"
#include "dataset/dataset.h"
#include "dataset/in_memory_dataset.h"
#include "session/call_context.h"
#include "session/exclusive.h"

namespace millrace {

/// An InMemoryDataset of a script, loaded once and trained on any number of times. Several ranks create it together;
/// each holds the rows of its files. One call at a time uses the rows: another is kAlreadyExists.
class MemoryRows {
 public:
  /// Rows in memory, and what was left out of them, for the user.
  using Loaded = std::pair<int64_t, std::string>;

  /// `text` is a TrainerDesc with the dataset. The errors of ReadScriptJob, FileLists, FilesOfRanks and
  /// DatasetFactory::Create; kInvalidConfig if no rank has files.
  static Result<std::unique_ptr<MemoryRows>> Create(const std::string& text, const CallContext& context);

  // The calls below have the errors of InMemoryDataset's methods of the same names.
  Result<Loaded> Load(const std::stop_token& stop);
  /// Loads in the background; WaitPreload ends it.
  Status Preload();
  Result<Loaded> WaitPreload(const std::stop_token& stop);
  Status Shuffle(uint64_t seed);
  /// Moves each row to the rank selected by its position, or by its name if lines with a name are merged, then
  /// shuffles. A collective. At most `most_rows` rows travel at once, with `pause_seconds` between rounds. The errors
  /// of ExchangeRows.
  Result<Loaded> GlobalShuffle(const CallContext& context, uint64_t seed, int64_t most_rows, int64_t pause_seconds);
  Status SlotsShuffle(const std::vector<std::string>& slots, uint64_t seed, int64_t candidates);
  Status SetPhase(bool join);
  Status SetBatches(int batch_size, int pv_batch_size, bool drop_last);
  Status Release();
  Result<int64_t> Size();
  Result<int64_t> PvSize();

  /// For a training call.
  Result<Exclusive<InMemoryDataset>::Lease> Acquire() { return dataset_->Acquire(); }

 private:
  MemoryRows() = default;
  Status ShareFiles(const CallContext& context, Result<LoadedConfig>* read);

  std::vector<std::string> files_of_all_;
  bool merges_names_ = false;
  std::optional<Exclusive<InMemoryDataset>> dataset_;
  std::stop_source preload_;
};

}  // namespace millrace
