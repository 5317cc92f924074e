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

}  // namespace millrace
