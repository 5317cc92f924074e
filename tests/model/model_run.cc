#include "model_run.h"

#include <glog/logging.h>

namespace millrace {
namespace {

CompiledModel Lower(const ModelDesc& model, const SlotSchema& schema) {
  Result<CompiledModel> compiled = CompileModel(model, schema, BuiltinOps());
  CHECK(compiled.ok()) << compiled.status().ToString();
  return std::move(*compiled);
}

}  // namespace

ModelRun::ModelRun(const ModelDesc& model, const SlotSchema& schema, CompileOptions options)
    : schema_(&schema), model_(Lower(model, schema)) {
  const Status started = RunStartup(model_.startup, BuiltinOps(), root_, 1);
  CHECK(started.ok()) << started.ToString();
  options.fetches.push_back(model_.loss);
  auto executable = Executable::Compile(model_.main, BuiltinOps(), options);
  CHECK(executable.ok()) << executable.status().ToString();
  executable_ = std::move(*executable);
  FrameOptions frame_options;
  frame_options.max_rows = 64;
  auto frame = Frame::Create(*executable_, schema_, root_, frame_options);
  CHECK(frame.ok()) << frame.status().ToString();
  frame_ = std::move(*frame);
}

float ModelRun::Train(const SlotBatch& batch) {
  RunContext context;
  context.batch = &batch;
  context.rows = batch.rows();
  context.step = step_++;
  const Status status = frame_->Run(context);
  CHECK(status.ok()) << status.ToString();
  return frame_->Find(model_.loss)->Get<Tensor>().data<float>()[0];
}

std::vector<float> ModelRun::Values(const std::string& name) const {
  const auto& tensor = frame_->Find(name)->Get<Tensor>();
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

std::vector<float> ModelRun::Gradient(const std::string& parameter) const {
  const std::string name = GradName(parameter);
  const Variable& variable = *frame_->Find(name);
  if (variable.Is<Tensor>()) return Values(name);
  const auto& shape = root_.Find(parameter)->Get<Tensor>();
  std::vector<float> dense(static_cast<size_t>(shape.numel()), 0.0F);
  const auto& rows = variable.Get<SelectedRows>();
  const auto width = static_cast<size_t>(shape.dims()[1]);
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    for (size_t j = 0; j < width; ++j) dense[rows.rows[i] * width + j] += rows.values.data<float>()[i * width + j];
  }
  return dense;
}

double ModelRun::NumericGradient(const SlotBatch& batch, float* value) {
  constexpr float kStep = 1e-2F;
  const float start = *value;
  *value = start + kStep;
  const double above = Train(batch);
  *value = start - kStep;
  const double below = Train(batch);
  *value = start;
  return (above - below) / (2.0 * kStep);
}

}  // namespace millrace
