#pragma once

#include <set>
#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "core/long_work.h"
#include "core/replace_folder.h"
#include "core/status.h"
#include "program/op_registry.h"
#include "runtime/scope.h"
#include "serving/dense_tables.h"
#include "serving/feed_lists.h"
#include "trainer_desc.pb.h"

namespace millrace {

/// What an export needs to know of a job.
struct ExportSource {
  const ProgramDesc* program = nullptr;  ///< of a batch; gradients and updates are left out
  const OpRegistry* registry = nullptr;  ///< must outlive the export
  const DataFeedDesc* data_desc = nullptr;
  std::vector<std::string> predictions;  ///< when the export names no fetch_vars
  std::vector<std::string> pooled;       ///< when it names no feed_vars; empty: no online model
};

/// A trained model to be written for another runtime: planned before training, so that what cannot be written is said
/// before the first batch, and written after it.
class ModelExport {
 public:
  /// `folder` is where the files go. kInvalidConfig with every mistake: no fetch_vars, a variable that is not there
  /// (with the nearest), a table that grows without a vocabulary, an operator that the format lacks.
  static Result<ModelExport> Plan(const ExportSource& source, const ExportDesc& desc, std::string folder);

  /// The parameters that will be written, with their shapes.
  const ProgramDesc& program() const { return offline_.program; }
  const std::string& folder() const { return folder_; }

  /// What keeps rows of this batch from being exported: an id of a slot that is not below the vocabulary, with its
  /// place among the batch's rows; "" when there is none. Costs a look at each id. Of a job without exported tables it
  /// costs nothing.
  std::string FindIdBeyond(const SlotBatch& batch, int* row) const;

  /// Writes the folder, whole or not at all; one that is there is replaced, if it holds nothing but an export. Nobody
  /// may train meanwhile. kInvalidConfig when a table has ids beyond the vocabulary, kIo with the system's reason,
  /// kCancelled when `work` is stopped.
  Status Write(Scope& root, const LongWork& work = {}) const;

 private:
  ModelExport() = default;
  Status WriteFiles(const Scope& parameters, const std::string& folder, const LongWork& work) const;

  ExportDesc desc_;
  std::string folder_;
  const OpRegistry* registry_ = nullptr;
  std::vector<std::string> fetches_;
  FeedList offline_;
  FeedList online_;
  bool has_online_ = false;
  std::vector<DenseTable> tables_;
  std::vector<std::string> table_slots_;  ///< whose ids are rows of tables_
};

/// The files that exports write: no list of them is in the folder, which is for other runtimes.
std::set<std::string> FilesOfExport(const std::string& folder);
inline constexpr SavedFolder kExportFolder = {"an exported model", FilesOfExport};

}  // namespace millrace
