#include "runtime/op_kernel.h"

#include "runtime/block_kernels.h"
#include "runtime/executable.h"

namespace millrace {
namespace {

std::string Describe(const OpView& op, std::string_view parameter) { return op.type() + ": " + std::string(parameter); }

}  // namespace

std::string RunContext::DescribeRow(int row) const {
  if (batch != nullptr && static_cast<size_t>(row) < batch->origins().size()) {
    const RowOrigin& origin = batch->origins()[static_cast<size_t>(row)];
    if (origin.line > 0) {
      const bool named = file_names != nullptr && origin.file < file_names->size();
      const std::string file = named ? (*file_names)[origin.file] : "file " + std::to_string(origin.file);
      return DescribeLines(file, origin.line, origin.line) +
             (lines_are_piped ? " (a line of pipe_command's output)" : "");
    }
  }
  return "row " + std::to_string(row) + " of the batch";
}

Result<std::vector<Variable*>> KernelContext::InputVariables(std::string_view parameter) const {
  std::vector<Variable*> variables;
  for (const std::string& name : InputArguments(op_->desc(), parameter)) {
    Variable* variable = name == kEmptyVar ? nullptr : scope_->Find(name);
    if (variable == nullptr && name != kEmptyVar) {
      return InvalidConfig(Describe(*op_, parameter) + ": there is no variable \"" + name + "\"");
    }
    variables.push_back(variable);
  }
  return variables;
}

Result<std::vector<Variable*>> KernelContext::OutputVariables(std::string_view parameter) const {
  std::vector<Variable*> variables;
  for (const std::string& name : OutputArguments(op_->desc(), parameter)) {
    Variable* variable = name == kEmptyVar ? nullptr : scope_->Find(name);
    if (variable == nullptr && name != kEmptyVar) {
      return InvalidConfig(Describe(*op_, parameter) + ": there is no variable \"" + name + "\"");
    }
    variables.push_back(variable);
  }
  return variables;
}

Result<std::vector<const Tensor*>> KernelContext::Inputs(std::string_view parameter) const {
  MR_ASSIGN(const std::vector<Variable*> variables, InputVariables(parameter));
  std::vector<const Tensor*> tensors;
  for (Variable* variable : variables) {
    if (variable != nullptr && !variable->empty() && !variable->Is<Tensor>()) {
      return InvalidConfig(Describe(*op_, parameter) + ": variable \"" + InputName(parameter) + "\" holds no tensor");
    }
    tensors.push_back(variable == nullptr ? nullptr : variable->GetMutable<Tensor>());
  }
  return tensors;
}

Result<std::vector<Tensor*>> KernelContext::Outputs(std::string_view parameter) const {
  MR_ASSIGN(const std::vector<Variable*> variables, OutputVariables(parameter));
  std::vector<Tensor*> tensors;
  for (Variable* variable : variables) {
    if (variable != nullptr && !variable->empty() && !variable->Is<Tensor>()) {
      return InvalidConfig(Describe(*op_, parameter) + ": variable \"" + OutputName(parameter) + "\" holds no tensor");
    }
    tensors.push_back(variable == nullptr ? nullptr : variable->GetMutable<Tensor>());
  }
  return tensors;
}

Result<const Tensor*> KernelContext::OptionalInput(std::string_view parameter) const {
  MR_ASSIGN(const std::vector<const Tensor*> tensors, Inputs(parameter));
  return tensors.empty() ? nullptr : tensors[0];
}

Result<Tensor*> KernelContext::OptionalOutput(std::string_view parameter) const {
  MR_ASSIGN(const std::vector<Tensor*> tensors, Outputs(parameter));
  return tensors.empty() ? nullptr : tensors[0];
}

Result<const Tensor*> KernelContext::Input(std::string_view parameter) const {
  MR_ASSIGN(const Tensor* tensor, OptionalInput(parameter));
  if (tensor == nullptr) return InvalidConfig(Describe(*op_, parameter) + " is not bound");
  return tensor;
}

Result<Tensor*> KernelContext::Output(std::string_view parameter) const {
  MR_ASSIGN(Tensor * tensor, OptionalOutput(parameter));
  if (tensor == nullptr) return InvalidConfig(Describe(*op_, parameter) + " is not bound");
  return tensor;
}

const VarMeta* KernelContext::Declared(const std::string& name) const {
  if (executable_ == nullptr) return nullptr;
  const auto it = executable_->vars().find(name);
  return it == executable_->vars().end() ? nullptr : &it->second;
}

PackedWeights* KernelContext::PackedWeightsOf(std::string_view parameter) const {
  if (options_->packed_weights == nullptr || !options_->read_only || executable_ == nullptr) return nullptr;
  for (const std::string& name : InputArguments(op_->desc(), parameter)) {
    const VarMeta* const declared = Declared(name);
    const bool is_parameter = declared != nullptr && declared->persistable && !scope_->Owns(name);
    if (!is_parameter || executable_->Writes(name)) return nullptr;
  }
  return options_->packed_weights;
}

Result<std::unique_ptr<BlockKernels>> KernelContext::Block(std::string_view attribute) const {
  if (executable_ == nullptr) return InvalidConfig(op_->type() + " runs a block and cannot stand alone");
  return BlockKernels::Create(*executable_, static_cast<int>(op_->Int(attribute)), *scope_, *options_);
}

const VarDesc* KernelContext::Declaration(std::string_view name) const {
  return executable_ == nullptr ? nullptr : executable_->FindReader(name);
}

std::string KernelContext::InputName(std::string_view parameter) const {
  const std::vector<std::string> names = InputArguments(op_->desc(), parameter);
  return names.empty() ? std::string() : names[0];
}

std::string KernelContext::OutputName(std::string_view parameter) const {
  const std::vector<std::string> names = OutputArguments(op_->desc(), parameter);
  return names.empty() ? std::string() : names[0];
}

}  // namespace millrace
