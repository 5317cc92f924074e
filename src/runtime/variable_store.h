#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "checkpoint.pb.h"
#include "core/checksummed_file.h"
#include "core/long_work.h"
#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"
#include "runtime/tensor_blocks.h"
#include "table/table_factory.h"

namespace millrace {

/// Files of a program's persistable variables, with the data to verify that they are complete.
struct StoredVariables {
  std::vector<StoredVariable> variables;  ///< sorted by name
  std::vector<StoredFile> files;
  /// Block sums of the tensors with separate files, by name, which a later save compares.
  std::map<std::string, BlockSums> blocks;
};

/// An earlier save whose files a new one can share: for a large table or tensor, the new save stores only changes.
struct EarlierSave {
  std::string folder;  ///< empty: none; this is the first of a series
  StoredVariables stored;
  /// Maximum distance of saves that store a variable completely. 1: changes are never saved.
  int full_every = 1;
  /// Saves changes regardless of their number, because the process is about to end.
  bool hurries = false;
};

/// Whether a variable is a tensor with a separate file.
bool HasTensorFile(const StoredVariable& variable);
/// All files of a variable.
std::vector<std::string> FilesOf(const StoredVariable& variable);

/// Completes a file that a manifest lists as `name`, relative to its folder. Fails like ChecksummedFile::Finish.
Result<StoredFile> FinishFile(ChecksummedFile& file, const std::string& name);
/// Stores the values that CheckStoredFiles compares.
void PutSum(const FileSum& sum, StoredFile* file);

/// Writes every persistable variable of `program` in `root` into the existing `folder`: tensors into the file
/// `parameters` (Paddle's combined format, in the order of sorted names), `content` of each table into `tables/NAME`
/// (table/table_files.h). Writes up to `threads` files concurrently.
///
/// With `earlier` and kAll, tensors of kLargeTensor bytes get separate files, `tensors/NAME`. A variable that was large
/// in `earlier` is saved as changes while all its files together are at most 1.5 times its size: into `changes/K/NAME`,
/// next to hard links to its files in `earlier`. All rows are saved if a table does not know its changes or the file
/// system lacks hard links.
///
/// No thread may write the variables meanwhile. Files are synced. Fails with kIo and the system's reason, kInternal for
/// a variable without a value, kCancelled after a stop request of `work`, leaving truncated files.
Result<StoredVariables> StoreVariables(const ProgramDesc& program, const std::string& folder, const Scope& root,
                                       TableContent content, int threads, const LongWork& work = {},
                                       const EarlierSave* earlier = nullptr);

/// Declares that `stored` has the current values of `root`: its large tables start tracking changes, so that a later
/// save can store only these. With `here_alone`, only for the rows in this process. Fails like
/// ChangeTracking::BeginChanges.
Status BeginChanges(const std::vector<StoredVariable>& stored, Scope& root, bool here_alone);
/// Declares that `stored` has the current values of `root`: fills StoredVariables::blocks, so that a later save can
/// store only changes of large tensors. Fails like SumBlocks and HostView::Of.
Status SumLargeTensors(const Scope& root, int threads, StoredVariables* stored);

/// Writes `content` of the table of `var` into FOLDER/tables/NAME and appends its data to `stored`; FOLDER/tables must
/// exist. Otherwise like StoreVariables, including failures.
Status StoreTable(const VarDesc& var, const SparseTable& table, const std::string& folder, TableContent content,
                  int threads, StoredVariables* stored, const LongWork& work = {});

/// Approximate number of bytes StoreVariables would write. Excludes tensors that it compares with `earlier`: their
/// changes are reported to LongWork::on_expected.
uint64_t BytesToStore(const ProgramDesc& program, const Scope& root, const EarlierSave* earlier = nullptr);

/// Estimates the size of a save at any time.
class SaveSize {
 public:
  /// For variables of `root`, which must outlive it and stay in place.
  static SaveSize Of(const ProgramDesc& program, const Scope& root);
  /// Approximate number of bytes to write. For large variables in an earlier save (`has_earlier`), counts only changes
  /// of tables and nothing for tensors, which would have to be read. Any thread, during training.
  uint64_t BytesToWrite(bool has_earlier) const;
  /// Bytes of tensors with separate files.
  uint64_t large_tensor_bytes() const { return large_tensors_; }

 private:
  uint64_t tensors_ = 0;  ///< bytes of all other tensors
  uint64_t large_tensors_ = 0;
  std::vector<const SparseTable*> tables_;
};

/// Creates the table described by `var`, of a class of `tables`, with initial rows from `seed`, and loads the files of
/// StoreTable into it, up to `threads` concurrently. Settings that CompareVariables allows to differ are `var`'s. Call
/// both checks first. Fails like TableFactory::Create and LoadTable.
Result<std::unique_ptr<SparseTable>> ReadTable(const std::string& folder, const StoredVariable& stored,
                                               const VarDesc& var, uint64_t seed, const TableFactory& tables,
                                               int threads, const LongWork& work = {});

/// Verifies size and checksums of `files`, up to `threads` concurrently. Fails with kBadData for the first damaged or
/// missing file or a name that FileInFolder rejects, naming the table in `variables` it belongs to; kIo if one cannot
/// be read, kCancelled after a stop request of `work`.
Status CheckStoredFiles(const std::string& folder, const std::vector<StoredFile>& files,
                        const std::vector<StoredVariable>& variables, int threads, const LongWork& work = {});

/// Fails with kInvalidConfig, one line per difference between a program's variables and stored ones: missing variables,
/// shapes, types, and table settings that a resumed run cannot change. Ignores variables in `settings`, which the job
/// defines.
Status CompareVariables(const ProgramDesc& program, const std::vector<StoredVariable>& stored,
                        const std::set<std::string>& settings);

/// Reads the files of StoreVariables into `root`: all tensors, and the tables that `root` has from a startup program.
/// Variables named in `settings` (can be null) are read into it instead. Reads up to `threads` files of a table
/// concurrently. Call CheckStoredFiles first. Fails with kBadData for files that are missing or do not match `stored`,
/// kIo if one cannot be read, kCancelled after a stop request with some variables read, and like LoadTable.
Status RestoreVariables(const std::string& folder, const std::vector<StoredVariable>& stored, Scope& root,
                        std::map<std::string, Tensor>* settings, int threads, const LongWork& work = {});

}  // namespace millrace
