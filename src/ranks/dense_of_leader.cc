#include "ranks/dense_of_leader.h"

#include <cstring>
#include <string>

#include "core/wire.h"
#include "runtime/tensor.h"

namespace millrace {
namespace {

std::string FormOf(const Tensor* tensor) {
  if (tensor == nullptr) return "not there";
  return std::string(DTypeName(tensor->dtype())) + " " + tensor->dims().ToString();
}

Tensor* HeldTensor(Scope& root, const std::string& name) {
  Variable* const variable = root.Find(name);
  if (variable == nullptr || !variable->Is<Tensor>()) return nullptr;
  auto* const tensor = variable->GetMutable<Tensor>();
  return tensor->empty() ? nullptr : tensor;
}

void PutTensors(const ProgramDesc& program, Scope& root, std::string* bytes) {
  WireWriter out(bytes);
  for (const VarDesc& var : program.blocks(0).vars()) {
    const Tensor* const tensor = var.persistable() ? HeldTensor(root, var.name()) : nullptr;
    if (tensor == nullptr) continue;
    const auto size = BytesOf(*tensor);
    out.PutText(var.name());
    out.PutText(FormOf(tensor));
    out.PutText({static_cast<const char*>(tensor->raw_data()), size});
  }
}

Status TakeTensors(const std::string& bytes, Scope& root) {
  WireReader in(bytes);
  while (!in.rest().empty()) {
    const std::string name(in.GetText());
    const std::string_view form = in.GetText();
    const std::string_view values = in.GetText();
    if (!in.ok()) return Internal("the leader's parameters end too soon");
    Tensor* const tensor = HeldTensor(root, name);
    if (FormOf(tensor) != form) {
      return InvalidConfig("variable \"" + name + "\" is " + FormOf(tensor) + " here, and " + std::string(form) +
                           " on rank 0; let all ranks run the same startup program and load the same files");
    }
    // In place: another variable may share the memory.
    if (!values.empty()) std::memcpy(const_cast<void*>(tensor->raw_data()), values.data(), values.size());
  }
  return Status::Ok();
}

}  // namespace

Status TakeDenseOfLeader(const ProgramDesc& program, Scope& root, RankGroup& ranks) {
  if (ranks.size() == 1) return Status::Ok();
  std::string bytes;
  if (ranks.leads()) PutTensors(program, root, &bytes);
  MR_TRY(ranks.FromLeader(&bytes));
  return ranks.Agree(ranks.leads() ? Status::Ok() : TakeTensors(bytes, root));
}

}  // namespace millrace
