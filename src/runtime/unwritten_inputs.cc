#include "runtime/unwritten_inputs.h"

#include <algorithm>

#include "runtime/executable.h"
#include "runtime/tensor.h"

namespace millrace {
namespace {

/// Whether a tensor was never resized and has no value. An empty tensor is a value: a slot can be empty in a batch.
bool IsUnwritten(const Variable& variable) {
  if (!variable.Is<Tensor>()) return variable.empty();
  const Tensor& tensor = variable.Get<Tensor>();
  return tensor.empty() && tensor.numel() != 0;
}

/// The first operator with output `name`, for messages: an operator that runs a block comes before those in the block.
std::string WriterOf(const std::string& name, const Executable& executable) {
  for (int block = 0; block < executable.block_count(); ++block) {
    for (const OpDesc& op : executable.ops(block)) {
      for (const OpDesc::Var& output : op.outputs()) {
        const auto& names = output.arguments();
        if (std::find(names.begin(), names.end(), name) == names.end()) continue;
        return op.type() + ", whose output " + output.parameter() + " it is, has not written it" +
               (BlockOf(op) >= 0 ? "; it does when its block runs" : "");
      }
    }
  }
  return "no operator writes it";
}

}  // namespace

UnwrittenInputs::UnwrittenInputs(const OpView& op, const Scope& scope) {
  if (op.info().takes_unwritten) return;
  for (const OpDesc::Var& input : op.desc().inputs()) {
    const auto is_input = [&input](const ArgInfo& arg) { return arg.name == input.parameter(); };
    const auto arg = std::find_if(op.info().inputs.begin(), op.info().inputs.end(), is_input);
    if (arg != op.info().inputs.end() && !arg->is_used) continue;
    for (const std::string& name : input.arguments()) {
      if (const Variable* const variable = scope.Find(name)) inputs_.push_back({&input, &name, variable});
    }
  }
}

Status UnwrittenInputs::Check(const Executable& executable) {
  std::erase_if(inputs_, [](const Input& input) { return !IsUnwritten(*input.variable); });
  if (inputs_.empty()) return Status::Ok();
  const Input& input = inputs_.front();
  return InvalidConfig("input " + input.parameter->parameter() + ": variable \"" + *input.name +
                       "\" has no value: " + WriterOf(*input.name, executable));
}

}  // namespace millrace
