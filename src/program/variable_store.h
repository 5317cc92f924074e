#pragma once

#include <string>
#include <vector>

#include "checkpoint.pb.h"
#include "core/status.h"
#include "framework.pb.h"
#include "framework/scope.h"
#include "table/sparse_table.h"

namespace millrace {

/// Persistable variables of a program in files, and what is needed to see that the files are whole.
struct StoredVariables {
  std::vector<StoredVariable> variables;  ///< sorted by name
  std::vector<StoredFile> files;
};

/// Writes every persistable variable of `program` that `root` holds into `folder`, which exists: tensors into the file
/// `parameters` (Paddle's combined form, in the order of their sorted names), `content` of each table into
/// `tables/NAME`.
///
/// Nobody may write the variables meanwhile. Files are synced. kIo with the system's reason when the disk is full.
Result<StoredVariables> StoreVariables(const ProgramDesc& program, const std::string& folder, const Scope& root,
                                       TableContent content);

/// Checks every file of `files` against its size and checksum; the first damaged or missing one is kBadData.
Status CheckStoredFiles(const std::string& folder, const std::vector<StoredFile>& files);

/// Says what differs between the variables of a program and stored ones, a line each (kInvalidConfig): missing ones,
/// other shapes, types, tables.
Status CompareVariables(const ProgramDesc& program, const std::vector<StoredVariable>& stored);

/// Reads what StoreVariables wrote into `root`: all tensors, and those tables that `root` has (made by a startup
/// program). Call CheckStoredFiles before.
Status RestoreVariables(const std::string& folder, const std::vector<StoredVariable>& stored, Scope& root);

}  // namespace millrace
