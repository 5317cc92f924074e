#pragma once

#include <google/protobuf/text_format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/demand.h"
#include "model.pb.h"
#include "runtime/variable_store.h"
#include "table/hash_table.h"

namespace millrace {

/// A tensor "w" of any size and a table "t", as the corpus has them.
inline ProgramDesc StoredProgram() {
  ProgramDesc program;
  Demand(google::protobuf::TextFormat::ParseFromString(
             R"(blocks { idx: 0 parent_idx: -1
                  vars { name: "w" persistable: true
                         type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: -1 dims: 2 } } } }
                  vars { name: "t" persistable: true type { type: SPARSE_TABLE }
                         attrs { name: "table" type: STRING s: "dim: 1" } } })",
             &program),
         "the program does not parse");
  return program;
}

/// Ends a fuzz target at a failure of another code.
inline void DemandOneOf(const Status& status, StatusCode a, StatusCode b) {
  Demand(status.ok() || status.code() == a || status.code() == b, "another failure", status.message());
}

/// Restores them from a folder, whatever it holds.
inline void RestoreStored(const std::string& folder, const std::vector<StoredVariable>& variables) {
  TableDesc desc;
  desc.set_name("t");
  desc.set_dim(1);
  desc.set_initial_rows(0);
  desc.mutable_optimizer()->mutable_sgd();
  Scope root;
  root.Var("t")->Set<std::unique_ptr<SparseTable>>(std::move(CreateHashTable(desc, 1)).value());
  DemandOneOf(RestoreVariables(folder, variables, root, nullptr, 1), StatusCode::kBadData, StatusCode::kInvalidConfig);
}

}  // namespace millrace
