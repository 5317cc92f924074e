#include "ops/optimizer/optimizer_kernel.h"

namespace millrace {
namespace {

Status CheckInPlace(const InferShapeContext& context, std::string_view in, std::string_view out, bool optional) {
  const std::vector<std::string> ins = InputArguments(context.op().desc(), in);
  const std::vector<std::string> outs = OutputArguments(context.op().desc(), out);
  if (ins == outs || (optional && outs.empty())) return Status::Ok();
  return context.Error("output " + std::string(out) + " must be bound to the variables of input " + std::string(in));
}

Status CheckShape(const InferShapeContext& context, std::string_view parameter, size_t i, const VarMeta& meta,
                  const std::string& param_name, const Dims& wanted) {
  const std::string name = InputArguments(context.op().desc(), parameter)[i];
  if (meta.dtype != DType::kFloat32) {
    return context.Error(std::string(parameter) + " \"" + name + "\" must be float32, but is " +
                         std::string(DTypeName(meta.dtype)));
  }
  const bool same = MayEqual(meta.dims, wanted) || (meta.dims.numel() == 1 && wanted.numel() == 1);
  if (same) return Status::Ok();
  return context.Error(std::string(parameter) + " " + Shown(name, meta.dims) + " is not of the shape of Param " +
                       Shown(param_name, wanted));
}

}  // namespace

Status InferOptimizer(InferShapeContext& context, std::span<const StateInfo> states,
                      std::span<const StateInfo> scalars) {
  MR_ASSIGN(const std::vector<VarMeta> params, context.Inputs("Param"));
  MR_ASSIGN(const std::vector<VarMeta> grads, context.Inputs("Grad"));
  const std::vector<ArgInfo>& inputs = context.op().info().inputs;
  const bool needs_rate = std::any_of(inputs.begin(), inputs.end(), [](const ArgInfo& input) {
    return input.name == "LearningRate" && !input.optional;
  });
  if (needs_rate || context.HasInput("LearningRate")) {
    MR_ASSIGN(const VarMeta rate, context.Input("LearningRate"));
    MR_TRY(ExpectDType(context, "LearningRate", rate, DType::kFloat32));
    if (rate.dims.numel() != 1) return context.Error("LearningRate " + rate.dims.ToString() + " must hold one value");
  }
  MR_TRY(CheckInPlace(context, "Param", "ParamOut", false));
  const std::vector<std::string> names = InputArguments(context.op().desc(), "Param");
  const auto check_count = [&](std::string_view parameter, size_t count) {
    if (count == params.size()) return Status::Ok();
    return context.Error(std::to_string(count) + " variables are bound to " + std::string(parameter) + " and " +
                         std::to_string(params.size()) + " to Param");
  };
  MR_TRY(check_count("Grad", grads.size()));
  for (size_t i = 0; i < params.size(); ++i) {
    MR_TRY(CheckShape(context, "Grad", i, grads[i], names[i], params[i].dims));
    context.SetOutput("ParamOut", params[i], static_cast<int>(i));
  }
  const auto check_lists = [&](std::span<const StateInfo> lists, bool scalar) -> Status {
    for (const StateInfo& list : lists) {
      MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs(list.in));
      MR_TRY(check_count(list.in, metas.size()));
      MR_TRY(CheckInPlace(context, list.in, list.out, scalar));
      for (size_t i = 0; i < metas.size(); ++i) {
        MR_TRY(CheckShape(context, list.in, i, metas[i], names[i], scalar ? Dims{1} : params[i].dims));
        context.SetOutput(list.out, metas[i], static_cast<int>(i));
      }
    }
    return Status::Ok();
  };
  MR_TRY(check_lists(states, false));
  return check_lists(scalars, true);
}

Result<std::vector<UpdateTarget>> BindTargets(const KernelContext& context, std::span<const StateInfo> states,
                                              std::span<const StateInfo> scalars) {
  MR_ASSIGN(const std::vector<Tensor*> params, context.Outputs("ParamOut"));
  MR_ASSIGN(const std::vector<Variable*> grads, context.InputVariables("Grad"));
  std::vector<UpdateTarget> targets(params.size());
  const std::vector<std::string> names = OutputArguments(context.op().desc(), "ParamOut");
  for (size_t i = 0; i < params.size(); ++i) {
    UpdateTarget& target = targets[i];
    target.name = names[i];
    target.param = params[i];
    if (grads[i] == nullptr) return InvalidConfig(context.op().type() + ": \"" + names[i] + "\" has no gradient");
    if (grads[i]->Is<SelectedRows>()) {
      target.sparse_grad = &grads[i]->Get<SelectedRows>();
    } else {
      target.dense_grad = grads[i]->GetMutable<Tensor>();
    }
  }
  const auto bind = [&](std::span<const StateInfo> lists, auto UpdateTarget::*place) -> Status {
    for (size_t which = 0; which < lists.size(); ++which) {
      // Read and written in place, so the input is the tensor even where Paddle 1 left the output out.
      MR_ASSIGN(const std::vector<Variable*> variables, context.InputVariables(lists[which].in));
      for (size_t i = 0; i < targets.size(); ++i) (targets[i].*place)[which] = variables[i]->GetMutable<Tensor>();
    }
    return Status::Ok();
  };
  MR_TRY(bind(states, &UpdateTarget::states));
  MR_TRY(bind(scalars, &UpdateTarget::scalars));
  return targets;
}

Status CheckTarget(const UpdateTarget& target) {
  const Dims& dims = target.param->dims();
  for (const Tensor* state : target.states) {
    if (state == nullptr || state->numel() == dims.numel()) continue;
    return BadData("a state " + state->dims().ToString() + " does not fit parameter " + Shown(target.name, dims));
  }
  for (const Tensor* scalar : target.scalars) {
    if (scalar == nullptr || scalar->numel() == 1) continue;
    return BadData("a state " + scalar->dims().ToString() + " of parameter " + Shown(target.name, dims) +
                   " must be one value");
  }
  if (target.dense_grad != nullptr) {
    if (target.dense_grad->numel() == dims.numel() && !target.param->empty()) return Status::Ok();
    return BadData("gradient " + target.dense_grad->dims().ToString() + " does not fit parameter " +
                   Shown(target.name, dims));
  }
  const auto rows = static_cast<int64_t>(target.sparse_grad->rows.size());
  if (rows == 0 || target.sparse_grad->values.numel() == rows * LockedRowWidth(dims)) return Status::Ok();
  return BadData("sparse gradient " + target.sparse_grad->values.dims().ToString() + " does not fit parameter " +
                 Shown(target.name, dims));
}

}  // namespace millrace
