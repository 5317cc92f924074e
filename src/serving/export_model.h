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

/// The job data needed for an export.
struct ExportSource {
  const ProgramDesc* program = nullptr;  ///< for a batch; gradients and updates are removed
  const OpRegistry* registry = nullptr;  ///< must outlive the export
  const DataFeedDesc* data_desc = nullptr;
  std::vector<std::string> predictions;  ///< used if the export has no fetch_vars
  std::vector<std::string> pooled;       ///< used if it has no feed_vars; empty: no online model
};

/// An export of a trained model for another runtime: planned before training, so that unsupported parts are reported
/// before the first batch, and written after it.
class ModelExport {
 public:
  /// `folder` is the output folder. Fails with kInvalidConfig, listing every mistake: missing fetch_vars, an unknown
  /// variable (with the closest name), a growing table without vocabulary, an operator that the format lacks.
  static Result<ModelExport> Plan(const ExportSource& source, const ExportDesc& desc, std::string folder);

  /// The program whose parameters will be written, with their shapes.
  const ProgramDesc& program() const { return offline_.program; }
  const std::string& folder() const { return folder_; }

  /// Returns why a row of this batch cannot be exported, and its position: an id of a slot outside the vocabulary; ""
  /// if all can. Checks each id; free for jobs without exported tables.
  std::string FindIdBeyond(const SlotBatch& batch, int* row) const;

  /// Writes the folder atomically, replacing an earlier export. No thread may train meanwhile. Fails with
  /// kInvalidConfig if a table has ids beyond the vocabulary or `folder` contains other files, kIo with the system's
  /// reason, kCancelled after a stop request of `work`.
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
  std::vector<std::string> table_slots_;  ///< slots whose ids are rows of tables_
};

/// The files written by exports: the folder contains no list of them, because it is for other runtimes.
std::set<std::string> FilesOfExport(const std::string& folder);
inline constexpr SavedFolder kExportFolder = {"an exported model", FilesOfExport};

}  // namespace millrace
