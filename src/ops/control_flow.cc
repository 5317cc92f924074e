#include <algorithm>

#include "framework/block_kernels.h"
#include "ops/kernel.h"

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

class WhileKernel : public BoundKernel<WhileKernel> {
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
      if (context.stop.stop_requested()) return Cancelled("stopped in a while loop");
      MR_TRY(block_->Run(body));
      if (context.loop != nullptr) MR_TRY(context.loop->AfterRound(&body));
    }
  }

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

class ConditionalBlockKernel : public BoundKernel<ConditionalBlockKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(conditions_, context.Inputs("Cond"));
    MR_ASSIGN(block_, context.Block("sub_block"));
    scalar_ = context.op().Bool("is_scalar_condition");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_ASSIGN(const bool runs, Runs());
    return runs ? block_->Run(context) : Status::Ok();
  }

 private:
  Result<bool> Runs() const {
    if (scalar_) return IsTrue(*conditions_[0]);
    return std::all_of(conditions_.begin(), conditions_.end(),
                       [](const Tensor* tensor) { return !tensor->empty() && tensor->numel() > 0; });
  }

  std::vector<const Tensor*> conditions_;
  std::unique_ptr<BlockKernels> block_;
  bool scalar_ = false;
};

}  // namespace

void RegisterControlFlow(OpRegistry& registry) {
  const std::string ignored = "as Paddle writes it; changes nothing here";
  registry.Add("while")
      .Doc("Runs a block again and again as long as Condition holds, which the block writes.")
      .Input("Condition", "bool [1]")
      .OptionalInput("X", "what the block reads from outside")
      .OptionalOutput("Out", "what the block writes for others")
      .OptionalOutput("StepScopes", "not used: a frame has one scope for all rounds")
      .Attr("sub_block", int64_t{0}, "number of the block in the program")
      .Attr("is_test", false, ignored)
      .InferShape(InferWhile)
      .Kernel<WhileKernel>();
  registry.Add("conditional_block")
      .Doc("Runs a block once when Cond is true, or, without is_scalar_condition, when no tensor of Cond is empty.")
      .Inputs("Cond", "bool [1], or any tensors")
      .OptionalInput("Input", "what the block reads from outside")
      .OptionalOutput("Out", "what the block writes for others")
      .OptionalOutput("Scope", "not used: a frame has one scope")
      .Attr("sub_block", int64_t{0}, "number of the block in the program")
      .Attr("is_scalar_condition", false, "Cond is one bool")
      .InferShape(InferConditionalBlock)
      .Kernel<ConditionalBlockKernel>();
}

}  // namespace millrace
