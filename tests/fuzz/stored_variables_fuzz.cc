// What checkpoints and saved models keep of a program's variables: the list in their manifests, and the file of their
// values. Whatever both hold: the variables are restored, or the Status is the one that the header names.
//
// The first two bytes are the length of the list (CheckpointManifest in text format), the rest is the file.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint.pb.h"
#include "fuzz/folder.h"
#include "model.pb.h"
#include "runtime/variable_store.h"
#include "table/sparse_table.h"

namespace {

using namespace millrace;

constexpr char kValues[] = "parameters";

/// A tensor "w" of any size and a table "t".
ProgramDesc Program() {
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

/// The list with all names of files replaced: the only file here is that of the values.
CheckpointManifest ParseList(const std::string& text) {
  CheckpointManifest list;
  google::protobuf::TextFormat::Parser parser;
  class Silent : public google::protobuf::io::ErrorCollector {
    void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  } silent;
  parser.RecordErrorsTo(&silent);
  if (!parser.ParseFromString(text, &list)) return {};
  for (StoredVariable& variable : *list.mutable_variable()) variable.set_file(kValues);
  for (StoredFile& file : *list.mutable_file()) file.set_name(kValues);
  return list;
}

void DemandOneOf(const Status& status, StatusCode a, StatusCode b) {
  Demand(status.ok() || status.code() == a || status.code() == b, "another failure", status.message());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const FuzzFolder folder;
  static const ProgramDesc program = Program();
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t length = data[0] + size_t{256} * data[1];
  const CheckpointManifest list = ParseList(bytes.substr(0, length));
  folder.Write(kValues, length < bytes.size() ? bytes.substr(length) : "");

  const std::vector<StoredVariable> variables(list.variable().begin(), list.variable().end());
  DemandOneOf(CheckStoredFiles(folder.path(), {list.file().begin(), list.file().end()}), StatusCode::kBadData,
              StatusCode::kBadData);
  DemandOneOf(CompareVariables(program, variables, {}), StatusCode::kInvalidConfig, StatusCode::kInvalidConfig);
  TableDesc desc;
  desc.set_name("t");
  desc.set_dim(1);
  desc.set_initial_rows(0);
  desc.mutable_optimizer()->mutable_sgd();
  Scope root;
  std::map<std::string, Tensor> none;
  root.Var("t")->Set<std::unique_ptr<SparseTable>>(std::move(CreateHashTable(desc, 1)).value());
  DemandOneOf(RestoreVariables(folder.path(), variables, root, &none), StatusCode::kBadData,
              StatusCode::kInvalidConfig);
  return 0;
}
