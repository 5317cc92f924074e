// Programs as Paddle saves them, serialized or as text. Whatever the bytes are: a program that reads back as it is
// written and whose variables can be described, or kInvalidConfig with the file's name.
#include <cstdint>
#include <string>

#include "fuzz/demand.h"
#include "program/program_files.h"
#include "program/var_meta.h"

namespace {

using namespace millrace;

void CheckVariables(const ProgramDesc& program) {
  for (const VarDesc& var : program.blocks(0).vars()) {
    const Result<VarMeta> meta = ToMeta(var);
    if (!meta.ok())
      Demand(meta.status().code() == StatusCode::kInvalidConfig, "another failure", meta.status().message());
  }
  Demand(PersistableTensors(program).size() <= static_cast<size_t>(program.blocks(0).vars_size()), "too many tensors");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const Result<ProgramDesc> program = ParseProgram(bytes, "program");
  if (!program.ok()) {
    const std::string message = program.status().message();
    Demand(program.status().code() == StatusCode::kInvalidConfig, "another failure", message);
    Demand(message.starts_with("program:"), "an error without its file", message);
    return 0;
  }
  CheckVariables(*program);
  const std::string written = program->SerializeAsString();
  const Result<ProgramDesc> back = ParseProgram(written, "program");
  Demand(back.ok() && back->SerializeAsString() == written, "written, it does not read");
  return 0;
}
