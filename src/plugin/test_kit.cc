#include "plugin/test_kit.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>

#include "batch/batch_pool.h"
#include "core/numbers.h"
#include "core/rng.h"
#include "data_feed.pb.h"
#include "inspect/batch_json.h"
#include "model/lowering.h"
#include "ops/builtin_ops.h"
#include "plugin/plugin_loader.h"
#include "program/backward.h"
#include "runtime/op_session.h"

namespace millrace {
namespace {

constexpr char kWeights[] = "test_kit.weights";
constexpr char kWeighted[] = "test_kit.weighted";
constexpr char kObjective[] = "test_kit.objective";

VarMeta MetaOf(const TestTensor& tensor) {
  VarMeta meta;
  meta.dims = Dims(std::span<const int64_t>(tensor.dims));
  return meta;
}

/// A session of operators with input values set.
Result<std::unique_ptr<OpSession>> Start(const std::vector<OpDesc>& ops, const TestKit::Tensors& inputs,
                                         const OpRegistry& registry) {
  VarMetas metas;
  for (const auto& [name, tensor] : inputs) {
    metas[name] = MetaOf(tensor);
    if (metas[name].dims.numel() == static_cast<int64_t>(tensor.values.size())) continue;
    return InvalidConfig("test: \"" + name + "\" has " + std::to_string(tensor.values.size()) +
                         " values, and its sizes are " + metas[name].dims.ToString());
  }
  MR_ASSIGN(std::unique_ptr<OpSession> session, OpSession::Create(ops, metas, registry));
  for (const auto& [name, tensor] : inputs) {
    std::copy(tensor.values.begin(), tensor.values.end(), session->tensor(name)->mutable_data<float>());
  }
  return session;
}

/// A float variable after a run.
Result<const Tensor*> Floats(OpSession& session, const std::string& name) {
  if (!session.has_tensor(name)) return InvalidConfig("test: no operator wrote \"" + name + "\"");
  const Tensor* tensor = session.tensor(name);
  if (tensor->dtype() == DType::kFloat32) return tensor;
  return InvalidConfig("test: \"" + name + "\" holds " + std::string(DTypeName(tensor->dtype())) + ", not floats");
}

Status Compare(const std::string& what, size_t i, double value, double expected, double tolerance) {
  if (std::isnan(value) && std::isnan(expected)) return Status::Ok();
  if (std::abs(value - expected) <= tolerance * std::max(1.0, std::abs(expected))) return Status::Ok();
  return BadData("test: " + what + "[" + std::to_string(i) + "] is " + ShortestNumber(value) + ", expected " +
                 ShortestNumber(expected));
}

/// The sum of `of` times weights.
Result<double> Objective(OpSession& session, const std::string& of, const std::vector<float>& weights) {
  MR_TRY(session.Run());
  MR_ASSIGN(const Tensor* const out, Floats(session, of));
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += static_cast<double>(out->data<float>()[i]) * static_cast<double>(weights[i]);
  }
  return sum;
}

/// The operators, followed by those of a weighted sum and of its gradient with respect to `by`.
Result<std::vector<OpDesc>> WithGradients(const std::vector<OpDesc>& ops, const TestKit::Tensors& inputs,
                                          const std::vector<std::string>& by, const std::string& of,
                                          const OpRegistry& registry) {
  ProgramDesc program;
  MR_ASSIGN(BlockBuilder block, BlockBuilder::Create(*FirstBlock(program), registry));
  for (const auto& [name, tensor] : inputs) {
    VarDesc& var = block.Declare(name, MetaOf(tensor));
    const bool is_wanted = std::find(by.begin(), by.end(), name) != by.end();
    var.set_is_parameter(is_wanted);
    var.set_stop_gradient(!is_wanted);
    var.set_persistable(true);
  }
  for (const OpDesc& op : ops) MR_TRY(block.Append(op, OpRole::kForward));
  MR_TRY(block.Append(
      MakeOp("elementwise_mul", {{"X", {of}}, {"Y", {kWeights}}}, {{"Out", {kWeighted}}}, {{"axis", int64_t{-1}}}),
      OpRole::kForward));
  MR_TRY(block.Append(MakeOp("reduce_sum", {{"X", {kWeighted}}}, {{"Out", {kObjective}}},
                             {{"dim", std::vector<int64_t>{0}}, {"keep_dim", false}, {"reduce_all", true}}),
                      OpRole::kLoss));
  MR_TRY(AppendBackward(program, kObjective, registry, 0).status());
  return std::vector<OpDesc>(program.blocks(0).ops().begin(), program.blocks(0).ops().end());
}

}  // namespace

Result<TestKit> TestKit::Create(const std::vector<std::string>& plugins) {
  auto all = std::make_unique<Registries>();
  static_cast<ModelParts&>(*all) = ModelParts::Builtin();
  RegisterBuiltinOps(all->ops);
  MR_TRY(all->ops.Seal());
  all->feeds = DataFeedFactory::Builtin();
  for (const std::string& plugin : plugins) MR_TRY(LoadPlugin(plugin, all.get()));
  return TestKit(std::move(all));
}

Status TestKit::ExpectValues(const std::vector<OpDesc>& ops, const Tensors& inputs, const std::string& variable,
                             const TestTensor& expected, double tolerance) const {
  MR_ASSIGN(const std::unique_ptr<OpSession> session, Start(ops, inputs, registries_->ops));
  MR_TRY(session->Run());
  MR_ASSIGN(const Tensor* const tensor, Floats(*session, variable));
  const Dims dims = MetaOf(expected).dims;
  if (tensor->dims() != dims) {
    return BadData("test: \"" + variable + "\" is " + tensor->dims().ToString() + ", expected " + dims.ToString());
  }
  if (dims.numel() != static_cast<int64_t>(expected.values.size())) {
    return InvalidConfig("test: " + std::to_string(expected.values.size()) + " values are expected of \"" + variable +
                         "\", whose sizes are " + dims.ToString());
  }
  for (size_t i = 0; i < expected.values.size(); ++i) {
    MR_TRY(Compare(variable, i, static_cast<double>(tensor->data<float>()[i]), static_cast<double>(expected.values[i]),
                   tolerance));
  }
  return Status::Ok();
}

Status TestKit::ExpectGradients(const std::vector<OpDesc>& ops, const Tensors& inputs,
                                const std::vector<std::string>& by, const std::string& of, double tolerance) const {
  MR_ASSIGN(const std::unique_ptr<OpSession> forward, Start(ops, inputs, registries_->ops));
  MR_TRY(forward->Run());
  MR_ASSIGN(const Tensor* const out, Floats(*forward, of));
  TestTensor weights{{out->dims().sizes().begin(), out->dims().sizes().end()}, {}};
  Rng rng(1);
  for (int64_t i = 0; i < out->numel(); ++i) weights.values.push_back(0.5F + static_cast<float>(rng.Uniform()));
  Tensors weighted = inputs;
  weighted[kWeights] = weights;
  MR_ASSIGN(const std::vector<OpDesc> both, WithGradients(ops, weighted, by, of, registries_->ops));
  MR_ASSIGN(const std::unique_ptr<OpSession> backward, Start(both, weighted, registries_->ops));
  MR_TRY(backward->Run());
  for (const std::string& name : by) {
    const auto input = inputs.find(name);
    if (input == inputs.end()) return InvalidConfig("test: no input \"" + name + "\"");
    MR_ASSIGN(const Tensor* const gradient, Floats(*backward, GradName(name)));
    if (gradient->numel() != static_cast<int64_t>(input->second.values.size())) {
      return BadData("test: the gradient of \"" + name + "\" is " + gradient->dims().ToString() + ", and it is " +
                     MetaOf(input->second).dims.ToString());
    }
    float* x = forward->tensor(name)->mutable_data<float>();
    for (size_t i = 0; i < input->second.values.size(); ++i) {
      constexpr float kStep = 1e-2F;
      const float before = x[i];
      x[i] = before + kStep;
      MR_ASSIGN(const double up, Objective(*forward, of, weights.values));
      x[i] = before - kStep;
      MR_ASSIGN(const double down, Objective(*forward, of, weights.values));
      x[i] = before;
      const double slope = (up - down) / (2 * static_cast<double>(kStep));
      MR_TRY(Compare("the gradient of " + name, i, static_cast<double>(gradient->data<float>()[i]), slope, tolerance));
    }
  }
  return Status::Ok();
}

Result<std::vector<OpDesc>> TestKit::LossOps(const LossDesc& loss, const Tensors& inputs) const {
  DataFeedDesc feed;
  for (const auto& [name, tensor] : inputs) {
    Slot* slot = feed.mutable_multi_slot_desc()->add_slots();
    slot->set_name(name);
    slot->set_type("float");
    slot->set_is_used(true);
    slot->set_is_dense(true);
    slot->add_shape(-1);
    for (size_t axis = 1; axis < tensor.dims.size(); ++axis) slot->add_shape(static_cast<int32_t>(tensor.dims[axis]));
  }
  MR_ASSIGN(const SlotSchema schema, SlotSchema::Create(feed));
  ModelDesc model;
  *model.add_loss() = loss;
  ProgramDesc program;
  ProgramDesc startup;
  MR_ASSIGN(BlockBuilder main, BlockBuilder::Create(*FirstBlock(program), registries_->ops));
  MR_ASSIGN(BlockBuilder first, BlockBuilder::Create(*FirstBlock(startup), registries_->ops));
  Lowering lowering(model, schema, *registries_, ModelForm::kPaddle, std::move(main), std::move(first));
  (void)LowerLoss(lowering);
  MR_TRY(lowering.ToStatus());
  return std::vector<OpDesc>(program.blocks(0).ops().begin(), program.blocks(0).ops().end());
}

Result<std::string> TestKit::FeedRows(const std::string& data_desc, const std::vector<std::string>& lines) const {
  DataFeedDesc desc;
  if (!google::protobuf::TextFormat::ParseFromString(data_desc, &desc)) {
    return InvalidConfig("test: this is no data_desc: " + data_desc);
  }
  MR_ASSIGN(const SlotSchema schema, SlotSchema::Create(desc));
  MR_ASSIGN(const std::unique_ptr<DataFeed> feed, registries_->feeds.Create(desc.name(), schema, desc));
  BatchPool pool(schema);
  const BatchPtr batch = pool.Take();
  MR_TRY(feed->Attach(batch.get()));
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string padded = lines[i] + std::string(kLinePadding, '\0');
    MR_ASSIGN(const LineResult result, feed->ParseLine(std::string_view(padded).substr(0, lines[i].size())));
    if (result == LineResult::kBad) return BadData("line " + std::to_string(i + 1) + ": " + feed->error().ToString());
  }
  MR_TRY(feed->Detach());
  return BatchAsJson(*batch, 0);
}

}  // namespace millrace
