#include <google/protobuf/text_format.h>

#include "model.pb.h"
#include "program/learning_rate.h"
#include "runtime/op_kernel.h"

namespace millrace {
namespace {

Status ParseSchedule(const OpView& op, LearningRateSchedule* schedule) {
  if (!google::protobuf::TextFormat::ParseFromString(op.String("schedule"), schedule)) {
    return InvalidConfig("attribute schedule is no LearningRateSchedule in text format: \"" + op.String("schedule") +
                         "\"");
  }
  return ValidateSchedule(*schedule);
}

Status InferRate(InferShapeContext& context) {
  LearningRateSchedule schedule;
  if (const Status s = ParseSchedule(context.op(), &schedule); !s.ok()) return context.Error(s.message());
  VarMeta rate;
  rate.dims = {1};
  context.SetOutput("Out", rate);
  return Status::Ok();
}

class LearningRateKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    std::unique_ptr<LearningRateKernel> kernel(new LearningRateKernel);
    MR_TRY(ParseSchedule(context.op(), &kernel->schedule_));
    kernel->base_ = context.op().Float("base");
    MR_ASSIGN(kernel->out_, context.Output("Out"));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  Status Run(const RunContext& context) override {
    *out_->Resize<float>({1}) = static_cast<float>(LearningRateAt(schedule_, base_, context.step));
    return Status::Ok();
  }

 private:
  LearningRateSchedule schedule_;
  double base_ = 0;
  Tensor* out_ = nullptr;
};

}  // namespace

void RegisterLearningRateSchedule(OpRegistry& registry) {
  registry.Add("learning_rate_schedule")
      .Doc("The learning rate of this batch, from the number of batches that all workers started before it.")
      .Output("Out", "[1]")
      .Attr("base", 0.01F, "the configured learning rate")
      .Attr("schedule", std::string(), "LearningRateSchedule in text format")
      .InferShape(InferRate)
      .Kernel<LearningRateKernel>();
}

}  // namespace millrace
