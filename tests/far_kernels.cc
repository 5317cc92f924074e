#include "far_kernels.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/op_kernel.h"
#include "runtime/transfer.h"

namespace millrace {
namespace {

/// A variable of the device, and its copy in the host's memory.
struct Pair {
  Variable* far;
  Variable* near;
};

Status ToHost(const Pair& pair) {
  if (pair.far->Is<SelectedRows>()) {
    const SelectedRows& rows = pair.far->Get<SelectedRows>();
    auto* const near = pair.near->GetMutable<SelectedRows>();
    near->TakeRows(rows);
    return CopyToHost(rows.values, &near->values);
  }
  if (!pair.far->Is<Tensor>()) return Status::Ok();
  return CopyToHost(pair.far->Get<Tensor>(), pair.near->GetMutable<Tensor>());
}

Status ToDevice(const Pair& pair, Stream* stream) {
  if (pair.near->Is<SelectedRows>()) {
    const SelectedRows& rows = pair.near->Get<SelectedRows>();
    auto* const far = pair.far->GetMutable<SelectedRows>();
    far->TakeRows(rows);
    return CopyFromHost(rows.values, &far->values, stream);
  }
  if (!pair.near->Is<Tensor>()) return Status::Ok();
  return CopyFromHost(pair.near->Get<Tensor>(), pair.far->GetMutable<Tensor>(), stream);
}

class FarKernel final : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    std::unique_ptr<FarKernel> kernel(new FarKernel(context));
    const OpDesc& op = context.op().desc();
    for (const OpDesc::Var& input : op.inputs()) MR_TRY(kernel->Take(context, input, &kernel->inputs_));
    for (const OpDesc::Var& output : op.outputs()) MR_TRY(kernel->Take(context, output, &kernel->outputs_));
    KernelContext host(context, kernel->scope_);
    const std::vector<KernelInfo>& kernels = context.op().info().kernels;
    const auto cpu =
        std::find_if(kernels.begin(), kernels.end(), [](const KernelInfo& info) { return info.where.device == kCpu; });
    MR_ASSIGN(kernel->kernel_, cpu->create(host));
    // What the kernel has made of its outputs, kernels behind this one find on the device.
    for (const Pair& pair : kernel->outputs_) {
      if (pair.near->Is<SelectedRows>()) pair.far->GetMutable<SelectedRows>();
      if (pair.near->Is<Tensor>()) pair.far->GetMutable<Tensor>();
    }
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }

  Status Run(const RunContext& context) override {
    CHECK(context.stream != nullptr) << "a kernel of a device without the device's stream";
    MR_TRY(context.stream->Synchronize());
    for (const Pair& pair : inputs_) MR_TRY(ToHost(pair));
    RunContext host = context;
    host.stream = nullptr;
    MR_TRY(kernel_->Run(host));
    for (const Pair& pair : outputs_) MR_TRY(ToDevice(pair, context.stream));
    return Status::Ok();
  }

 private:
  explicit FarKernel(KernelContext& context) : scope_(&context.scope(), Cpu()) {}

  /// Makes the copies of an argument's variables, with what these hold by now. Tables and readers are the host's: the
  /// kernel finds them where they are.
  Status Take(const KernelContext& context, const OpDesc::Var& argument, std::vector<Pair>* pairs) {
    for (const std::string& name : argument.arguments()) {
      Variable* const far = context.scope().Find(name);
      if (far == nullptr) continue;
      const VarMeta* const meta = context.Declared(name);
      const bool is_tensor = far->Is<Tensor>() || far->Is<SelectedRows>() ||
                             (far->empty() && meta != nullptr &&
                              (meta->kind == VarType::LOD_TENSOR || meta->kind == VarType::SELECTED_ROWS));
      if (!is_tensor) continue;
      pairs->push_back({far, scope_.Var(name)});
      MR_TRY(ToHost(pairs->back()));
    }
    return Status::Ok();
  }

  Scope scope_;
  std::vector<Pair> inputs_;
  std::vector<Pair> outputs_;
  std::unique_ptr<OpKernel> kernel_;
};

}  // namespace

void AddFarKernels(OpRegistry& registry) {
  std::vector<std::string> types;
  for (const OpInfo* op : registry.all()) {
    const bool runs_block =
        std::any_of(op->attrs.begin(), op->attrs.end(), [](const AttrInfo& attr) { return attr.is_block; });
    // A composite operator consists of others, which run there.
    if (!runs_block && !op->kernels.empty()) types.push_back(op->type);
  }
  for (const std::string& type : types) {
    const Status added = registry.AddKernel(type, {{"far", {}}, FarKernel::Create});
    CHECK(added.ok()) << added.ToString();
  }
}

}  // namespace millrace
