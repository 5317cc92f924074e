// What checkpoints and saved models keep of a program's variables: the list in their manifests, and the file of their
// values. Whatever both hold: the variables are restored, or the Status is the one that the header names.
//
// The first two bytes are the length of the list (CheckpointManifest in text format), the rest is the file.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <string>

#include "checkpoint.pb.h"
#include "fuzz/folder.h"
#include "fuzz/stored_program.h"
#include "runtime/variable_store.h"

namespace {

using namespace millrace;

constexpr char kValues[] = "parameters";

/// The list with all names of files replaced: the only file here is that of the values.
CheckpointManifest ParseList(const std::string& text) {
  CheckpointManifest list;
  google::protobuf::TextFormat::Parser parser;
  class Silent : public google::protobuf::io::ErrorCollector {
    void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  } silent;
  parser.RecordErrorsTo(&silent);
  if (!parser.ParseFromString(text, &list)) return {};
  for (StoredVariable& variable : *list.mutable_variable()) {
    variable.clear_file();
    variable.add_file(kValues);
  }
  for (StoredFile& file : *list.mutable_file()) file.set_name(kValues);
  return list;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const FuzzFolder folder;
  static const ProgramDesc program = StoredProgram();
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t length = data[0] + size_t{256} * data[1];
  const CheckpointManifest list = ParseList(bytes.substr(0, length));
  folder.Write(kValues, length < bytes.size() ? bytes.substr(length) : "");

  const std::vector<StoredVariable> variables(list.variable().begin(), list.variable().end());
  DemandOneOf(CheckStoredFiles(folder.path(), {list.file().begin(), list.file().end()}, variables, 1),
              StatusCode::kBadData, StatusCode::kBadData);
  DemandOneOf(CompareVariables(program, variables, {}), StatusCode::kInvalidConfig, StatusCode::kInvalidConfig);
  RestoreStored(folder.path(), variables);
  return 0;
}
