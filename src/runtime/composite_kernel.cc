#include "runtime/composite_kernel.h"

#include "program/expansion.h"
#include "runtime/executable.h"

namespace millrace {

Result<std::unique_ptr<OpKernel>> CompositeKernel::Create(KernelContext& context) {
  const Executable* const executable = context.executable();
  if (executable == nullptr) return InvalidConfig(context.op().type() + " needs a program to run in");
  const ExpandedOp& expanded = *executable->FindExpansion(context.op().desc());
  auto kernel = std::make_unique<CompositeKernel>();
  Scope& scope = context.scope();
  for (const auto& [name, meta] : expanded.temporaries) scope.Var(name);
  const auto tensor = [&scope](const std::string& name) { return scope.Find(name)->GetMutable<Tensor>(); };
  for (const auto& [one, other] : expanded.equal_shapes) {
    kernel->equal_shapes_.push_back({{one, other}, {tensor(one), tensor(other)}, expanded.vars.contains(other)});
  }
  for (const OpDesc& op : expanded.ops) {
    const OpView view(op, *executable->registry().Find(op.type()));
    MR_ASSIGN(const KernelInfo* const info, ChooseKernel(view, executable->vars(), executable->device().name()));
    KernelContext part(view, scope, context.options(), executable);
    MR_ASSIGN(std::unique_ptr<OpKernel> made, info->create(part));
    kernel->kernels_.push_back(std::move(made));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status CompositeKernel::EqualShapes::Check() const {
  const Dims& one = tensors[0]->dims();
  const Dims& other = tensors[1]->dims();
  // Of one value, some programs say [] and others [1].
  if (one == other || (one.numel() == 1 && other.numel() == 1)) return Status::Ok();
  return BadData("shapes differ: \"" + names[0] + "\" " + one.ToString() + ", \"" + names[1] + "\" " +
                 other.ToString());
}

Status CompositeKernel::Run(const RunContext& context) {
  for (const EqualShapes& shapes : equal_shapes_) {
    if (!shapes.is_made) MR_TRY(shapes.Check());
  }
  for (const std::unique_ptr<OpKernel>& kernel : kernels_) MR_TRY(kernel->Run(context));
  for (const EqualShapes& shapes : equal_shapes_) {
    if (shapes.is_made) MR_TRY(shapes.Check());
  }
  return Status::Ok();
}

}  // namespace millrace
