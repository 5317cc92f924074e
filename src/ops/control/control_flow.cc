#include <algorithm>

#include "ops/copy_tensor.h"
#include "ops/kernel.h"
#include "ops/scalar_input.h"
#include "runtime/block_kernels.h"

namespace millrace {
namespace {

Status ExpectScalarBool(const InferShapeContext& context, std::string_view parameter, const VarMeta& meta) {
  MR_TRY(ExpectDType(context, parameter, meta, DType::kBool));
  if (meta.dims.numel() == 1 || meta.dims.numel() < 0) return Status::Ok();
  return context.Error(std::string(parameter) + " " +
                       Shown(InputArguments(context.op().desc(), parameter)[0], meta.dims) + " must hold one value");
}

Status InferWhile(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta condition, context.Input("Condition"));
  return ExpectScalarBool(context, "Condition", condition);
}

Result<bool> IsTrue(const Tensor& condition) {
  if (condition.empty() || condition.numel() != 1 || condition.dtype() != DType::kBool) {
    return InvalidConfig("the condition must hold one bool when the operator runs");
  }
  return *condition.data<bool>();
}

class WhileKernel : public BoundKernel<WhileKernel>, public BlockRunner {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(condition_, context.Input("Condition"));
    MR_ASSIGN(block_, context.Block("sub_block"));
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    RunContext body = context;
    body.loop = nullptr;  // a loop in a round is no training
    if (context.loop != nullptr) MR_TRY(context.loop->BeforeLoop(&body));
    while (true) {
      MR_ASSIGN(const bool go_on, IsTrue(*condition_));
      if (!go_on) return Status::Ok();
      // A training loop ends after a round, where its state is whole and can be saved.
      if (context.loop == nullptr && context.stop.stop_requested()) return Cancelled("stopped in a while loop");
      Status ran = block_->Run(body);
      if (context.loop == nullptr) {
        MR_TRY(std::move(ran));
      } else if (ran.ok()) {
        MR_TRY(context.loop->AfterRound(&body));
      } else {
        return context.loop->AfterCutRound(block_->failed_op(), std::move(ran), &body);
      }
    }
  }
  const BlockKernels& block() const override { return *block_; }

 private:
  const Tensor* condition_ = nullptr;
  std::unique_ptr<BlockKernels> block_;
};

Status InferConditionalBlock(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> conditions, context.Inputs("Cond"));
  if (!context.op().Bool("is_scalar_condition")) return Status::Ok();
  if (conditions.size() != 1) return context.Error("a scalar condition is one variable in Cond");
  return ExpectScalarBool(context, "Cond", conditions[0]);
}

/// Whether the block of a conditional_block runs in a batch.
class BranchCondition {
 public:
  static Result<BranchCondition> Bind(const KernelContext& context) {
    BranchCondition condition;
    MR_ASSIGN(condition.conditions_, context.Inputs("Cond"));
    condition.scalar_ = context.op().Bool("is_scalar_condition");
    return condition;
  }
  Result<bool> Runs() const {
    if (scalar_) return IsTrue(*conditions_[0]);
    return std::all_of(conditions_.begin(), conditions_.end(),
                       [](const Tensor* tensor) { return !tensor->empty() && tensor->numel() > 0; });
  }

 private:
  std::vector<const Tensor*> conditions_;
  bool scalar_ = false;
};

class ConditionalBlockKernel : public BoundKernel<ConditionalBlockKernel>, public BlockRunner {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(condition_, BranchCondition::Bind(context));
    MR_ASSIGN(block_, context.Block("sub_block"));
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_ASSIGN(const bool runs, condition_.Runs());
    return runs ? block_->Run(context) : Status::Ok();
  }
  const BlockKernels& block() const override { return *block_; }

 private:
  BranchCondition condition_;
  std::unique_ptr<BlockKernels> block_;
};

/// Runs the block of gradients when the forward block ran, and takes its inputs' gradients out of it; otherwise, and
/// for inputs that the block did not use, they are zero.
class ConditionalBlockGradKernel : public BoundKernel<ConditionalBlockGradKernel>, public BlockRunner {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(condition_, BranchCondition::Bind(context));
    MR_ASSIGN(block_, context.Block("sub_block"));
    MR_ASSIGN(const std::vector<Variable*> inputs, context.InputVariables("Input"));
    MR_ASSIGN(const std::vector<Variable*> inner, context.InputVariables("Inner@GRAD"));
    MR_ASSIGN(const std::vector<Variable*> outer, context.OutputVariables("Input@GRAD"));
    if (outer.size() != inputs.size() || inner.size() != inputs.size()) {
      return InvalidConfig("conditional_block_grad: " + std::to_string(outer.size()) + " gradients for " +
                           std::to_string(inputs.size()) + " variables in Input");
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (outer[i] == nullptr) continue;
      if (inputs[i] == nullptr || !(inputs[i]->empty() || inputs[i]->Is<Tensor>())) {
        return InvalidConfig("conditional_block_grad: variable " + std::to_string(i) + " of Input is no tensor");
      }
      Gradient gradient{inputs[i]->GetMutable<Tensor>()};
      if (inner[i] != nullptr && inner[i]->Is<SelectedRows>()) {
        gradient.inner_rows = inner[i]->GetMutable<SelectedRows>();
        gradient.outer_rows = outer[i]->GetMutable<SelectedRows>();
      } else {
        if (inner[i] != nullptr) gradient.inner = inner[i]->GetMutable<Tensor>();
        gradient.outer = outer[i]->GetMutable<Tensor>();
      }
      gradients_.push_back(gradient);
    }
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_ASSIGN(const bool runs, condition_.Runs());
    if (runs) MR_TRY(block_->Run(context));
    for (const Gradient& gradient : gradients_) {
      if (gradient.outer_rows != nullptr) {
        TakeRows(gradient, runs);
      } else if (runs && gradient.inner != nullptr && !gradient.inner->empty()) {
        CopyTensor(*gradient.inner, gradient.outer);
      } else if (!gradient.input->empty()) {
        float* zeros = gradient.outer->Resize<float>(gradient.input->dims());
        std::fill_n(zeros, gradient.input->numel(), 0.0F);
      }
    }
    return Status::Ok();
  }
  const BlockKernels& block() const override { return *block_; }

 private:
  struct Gradient {
    const Tensor* input = nullptr;
    const Tensor* inner = nullptr;
    Tensor* outer = nullptr;
    const SelectedRows* inner_rows = nullptr;  ///< or these two
    SelectedRows* outer_rows = nullptr;
  };

  static void TakeRows(const Gradient& gradient, bool runs) {
    SelectedRows& to = *gradient.outer_rows;
    to.StartRows(nullptr);
    if (runs) to.TakeRows(*gradient.inner_rows);
    to.height = gradient.input->dims()[0];
    if (!to.rows.empty()) CopyTensor(gradient.inner_rows->values, &to.values);
  }

  BranchCondition condition_;
  std::unique_ptr<BlockKernels> block_;
  std::vector<Gradient> gradients_;
};

Status InferConditionalBlockGrad(InferShapeContext& context) {
  MR_TRY(InferConditionalBlock(context));
  return KeepOutputs(context);
}

// A branch leaves its result in a variable of its own; select_input takes that of the branch that ran, and
// select_output hands its gradient back there.

Status InferSelectInput(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs("X"));
  VarMeta out = metas[0];
  for (const VarMeta& meta : metas) {
    MR_TRY(ExpectDType(context, "X", meta, out.dtype));
    if (meta.dims.rank() != out.dims.rank()) return Status::Ok();  // as the program describes it
    for (int axis = 0; axis < out.dims.rank(); ++axis) {
      if (meta.dims[axis] != out.dims[axis]) out.dims.set(axis, -1);
    }
    out.lod_level = std::max(out.lod_level, meta.lod_level);
  }
  context.SetOutput("Out", out);
  return Status::Ok();
}

/// Moves a tensor from one place of many, or to one of many.
class SelectKernel : public BoundKernel<SelectKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(mask_, ScalarInput::Bind(context, "Mask", 0));
    MR_ASSIGN(from_, context.Inputs("X"));
    MR_ASSIGN(to_, context.Outputs("Out"));
    if (from_.size() == 1 || to_.size() == 1) return Status::Ok();
    return InvalidConfig(context.op().type() + ": X and Out are both of several branches");
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const double mask, mask_.Read());
    const size_t count = std::max(from_.size(), to_.size());
    if (!(mask >= 0 && mask < static_cast<double>(count))) {
      return BadData("Mask is " + std::to_string(ConvertValue<int64_t>(mask)) + ", of " + std::to_string(count) +
                     " branches");
    }
    const auto branch = static_cast<size_t>(mask);
    const Tensor* from = from_.size() == 1 ? from_[0] : from_[branch];
    Tensor* to = to_.size() == 1 ? to_[0] : to_[branch];
    if (from == nullptr || from->empty()) return BadData("branch " + std::to_string(branch) + " left no value");
    if (to != nullptr) CopyTensor(*from, to);
    return Status::Ok();
  }

 private:
  ScalarInput mask_;
  std::vector<const Tensor*> from_;
  std::vector<Tensor*> to_;
};

}  // namespace

void RegisterControlFlow(OpRegistry& registry) {
  const std::string ignored = "as Paddle writes it; changes nothing here";
  registry.Add("while")
      .Doc("Runs a block again and again as long as Condition holds, which the block writes.")
      .Input("Condition", "bool [1]")
      .OptionalInputs("X", "what the block reads from outside")
      .OptionalOutputs("Out", "what the block writes for others")
      .OptionalOutputs("StepScopes", "not used: a frame has one scope for all rounds")
      .Block("sub_block", "number of the block in the program")
      .Attr("is_test", false, ignored)
      .InferShape(InferWhile)
      .TakesUnwritten()
      .Kernel<WhileKernel>();
  registry.Add("conditional_block")
      .Doc("Runs a block once when Cond is true, or, without is_scalar_condition, when no tensor of Cond is empty.")
      .Inputs("Cond", "bool [1], or any tensors")
      .OptionalInputs("Input", "what the block reads from outside")
      .OptionalOutputs("Out", "what the block writes for others")
      .OptionalOutputs("Scope", "not used: a frame has one scope")
      .Block("sub_block", "number of the block in the program")
      .Attr("is_scalar_condition", false, "Cond is one bool")
      .InferShape(InferConditionalBlock)
      .TakesUnwritten()
      .Kernel<ConditionalBlockKernel>();
  registry.Add("conditional_block_grad")
      .Doc("Gradient of conditional_block: zero where its block did not run.")
      .Inputs("Cond", "of the forward operator")
      .OptionalInputs("Input", "of the forward operator")
      .UnreadInputs("Out", "of the forward operator")
      .OptionalInputs("Out@GRAD", "gradients of Out, which the block reads")
      .UnreadInputs("Scope", "a frame has one scope")
      .OptionalInputs("Inner@GRAD", "where the block leaves the gradients; Executable::Compile says")
      .OptionalOutputs("Input@GRAD", "gradients of Input")
      .Block("sub_block", "number of the block in the program")
      .Attr("is_scalar_condition", false, "Cond is one bool")
      .InferShape(InferConditionalBlockGrad)
      .Gradient()
      .TakesUnwritten()
      .Kernel<ConditionalBlockGradKernel>();
  registry.Add("select_input")
      .Doc("Out = a copy of the Mask-th of X: what the branch that ran has left.")
      .Inputs("X", "a tensor of each branch")
      .Input("Mask", "[1]")
      .Output("Out", "like that of X")
      .InferShape(InferSelectInput)
      .TakesUnwritten()
      .Kernel<SelectKernel>();
  registry.Add("select_output")
      .Doc("The Mask-th of Out = a copy of X; the others stay.")
      .Input("X", "a tensor")
      .Input("Mask", "[1]")
      .Outputs("Out", "a place for each branch")
      .InferShape(KeepOutputs)
      .Kernel<SelectKernel>();
}

}  // namespace millrace
