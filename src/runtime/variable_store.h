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

/// Persistable variables of a program in files, and what is needed to see that the files are whole.
struct StoredVariables {
  std::vector<StoredVariable> variables;  ///< sorted by name
  std::vector<StoredFile> files;
  /// Of tensors that have files of their own, what a later save compares them with, by name.
  std::map<std::string, BlockSums> blocks;
};

/// A save whose files a later one may share: of a large table or tensor it has what changed since alone.
struct EarlierSave {
  std::string folder;  ///< empty: there is none, and this is the first of many
  StoredVariables stored;
  /// How many saves there are at most from one with all of a variable to before the next such one. 1: no save has
  /// changes alone.
  int full_every = 1;
  /// Changes will do however many there are: the process is to end soon.
  bool hurries = false;
};

/// Whether a variable is a tensor with a file of its own.
bool HasTensorFile(const StoredVariable& variable);
/// All files that hold a variable.
std::vector<std::string> FilesOf(const StoredVariable& variable);

/// Ends a file that a manifest lists under `name`, relative to the manifest's folder.
Result<StoredFile> FinishFile(ChecksummedFile& file, const std::string& name);
/// Makes `file` say what CheckStoredFiles compares.
void PutSum(const FileSum& sum, StoredFile* file);

/// Writes every persistable variable of `program` that `root` holds into `folder`, which exists: tensors into the file
/// `parameters` (Paddle's combined form, in the order of their sorted names), `content` of each table into
/// `tables/NAME` (table/table_files.h), up to `threads` files at a time.
///
/// With `earlier`, and kAll for `content`, tensors of kLargeTensor bytes have files of their own, `tensors/NAME`. A
/// variable that was large in it is saved as changes where all files of it then have half as much again as it has, at
/// most: into `changes/K/NAME`, beside hard links to the files that `earlier` has of it. A table that does not know its
/// changes, or a file system without such links, saves all rows.
///
/// Nobody may write the variables meanwhile. Files are synced. kIo with the system's reason when the disk is full;
/// kCancelled after a stop request of `work`, with files cut off.
Result<StoredVariables> StoreVariables(const ProgramDesc& program, const std::string& folder, const Scope& root,
                                       TableContent content, int threads, const LongWork& work = {},
                                       const EarlierSave* earlier = nullptr);

/// What `stored` holds is what `root` has now: from here on its large tables note what changes, so that a later save
/// may have that alone. With `here_alone` the rows that lie in this process do.
Status BeginChanges(const std::vector<StoredVariable>& stored, Scope& root, bool here_alone);
/// What `stored` holds is what `root` has now: fills StoredVariables::blocks, so that a later save may have what
/// changed of large tensors alone.
Status SumLargeTensors(const Scope& root, int threads, StoredVariables* stored);

/// Writes `content` of the table of `var` into FOLDER/tables/NAME, and appends what is to be known of it to `stored`;
/// FOLDER/tables exists. As StoreVariables otherwise.
Status StoreTable(const VarDesc& var, const SparseTable& table, const std::string& folder, TableContent content,
                  int threads, StoredVariables* stored, const LongWork& work = {});

/// About how many bytes StoreVariables would write; of tensors that it compares with `earlier`, none: it tells
/// LongWork::on_expected what changed.
uint64_t BytesToStore(const ProgramDesc& program, const Scope& root, const EarlierSave* earlier = nullptr);

/// What a save of a program's variables has to write, from outside: a look at any time.
class SaveSize {
 public:
  /// Of variables of `root` that outlive it, and stay where they are.
  static SaveSize Of(const ProgramDesc& program, const Scope& root);
  /// About how many bytes are written: of large variables that are in an earlier save (`has_earlier`) what changed of
  /// tables, and of tensors nothing, for which they must be looked at. Any thread, while others train.
  uint64_t BytesToWrite(bool has_earlier) const;
  /// Of tensors that have files of their own.
  uint64_t large_tensor_bytes() const { return large_tensors_; }

 private:
  uint64_t tensors_ = 0;  ///< bytes of all others
  uint64_t large_tensors_ = 0;
  std::vector<const SparseTable*> tables_;
};

/// Makes the table that `var` describes, of a class of `tables`, whose rows start by `seed`, and reads what StoreTable
/// wrote into it, up to `threads` files at a time: what CompareVariables lets differ from `stored` is as `var` has it.
/// Call both checks before. kCancelled after a stop request.
Result<std::unique_ptr<SparseTable>> ReadTable(const std::string& folder, const StoredVariable& stored,
                                               const VarDesc& var, uint64_t seed, const TableFactory& tables,
                                               int threads, const LongWork& work = {});

/// Checks every file of `files` against its size and checksums, up to `threads` at a time; the first damaged or missing
/// one is kBadData, as is one that FileInFolder refuses. The message names the table of `variables` that it is of.
/// kCancelled after a stop request of `work`.
Status CheckStoredFiles(const std::string& folder, const std::vector<StoredFile>& files,
                        const std::vector<StoredVariable>& variables, int threads, const LongWork& work = {});

/// Says what differs between the variables of a program and stored ones, a line each (kInvalidConfig): missing ones,
/// other shapes, types, tables but for what a run that goes on may change of them. Those of `settings` are the job's to
/// say, and are not compared.
Status CompareVariables(const ProgramDesc& program, const std::vector<StoredVariable>& stored,
                        const std::set<std::string>& settings);

/// Reads what StoreVariables wrote into `root`: all tensors, and those tables that `root` has (made by a startup
/// program). What `settings` (or null) has a name of is read into it instead. Up to `threads` files of a table are read
/// at a time. Call CheckStoredFiles before. kCancelled after a stop request, with some of them read.
Status RestoreVariables(const std::string& folder, const std::vector<StoredVariable>& stored, Scope& root,
                        std::map<std::string, Tensor>* settings, int threads, const LongWork& work = {});

}  // namespace millrace
