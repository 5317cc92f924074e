#include "stub_ops.h"

namespace millrace {
namespace {

Status InferLookup(InferShapeContext& context) {
  MR_ASSIGN(VarMeta out, context.Input("Ids"));
  MR_ASSIGN(const VarMeta table, context.Input("W"));
  const bool keeps_axis = context.op().type() == "lookup_table_v2";
  out.dtype = DType::kFloat32;
  out.dims = keeps_axis ? Dims{-1, 1, table.dims[1]} : Dims{-1, table.dims[1]};
  context.SetOutput("Out", out);
  return Status::Ok();
}

Status InferPool(InferShapeContext& context) {
  MR_ASSIGN(VarMeta out, context.Input("X"));
  out.lod_level = 0;
  context.SetOutput("Out", out);
  return Status::Ok();
}

Status InferConcat(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> xs, context.Inputs("X"));
  VarMeta out = xs[0];
  int64_t columns = 0;
  for (const VarMeta& x : xs) columns += x.dims[1];
  out.dims.set(1, columns);
  context.SetOutput("Out", out);
  return Status::Ok();
}

Status InferMul(InferShapeContext& context) {
  MR_ASSIGN(VarMeta out, context.Input("X"));
  MR_ASSIGN(const VarMeta y, context.Input("Y"));
  if (out.dims[-1] != y.dims[0]) return context.Error("columns of X are not rows of Y");
  out.dims.set(out.dims.rank() - 1, y.dims[1]);
  context.SetOutput("Out", out);
  return Status::Ok();
}

Status InferColumn(InferShapeContext& context) {
  MR_ASSIGN(VarMeta out, context.Input("X"));
  out.dims = {out.dims[0], 1};
  context.SetOutput("Y", out);
  context.SetOutput("Out", out);
  return Status::Ok();
}

Status InferOne(InferShapeContext& context) {
  VarMeta out;
  out.dims = {1};
  context.SetOutput("Out", out);
  return Status::Ok();
}

Status InferSame(InferShapeContext& context) {
  for (const char* parameter : {"X", "Param"}) {
    if (!context.HasInput(parameter)) continue;
    MR_ASSIGN(const VarMeta meta, context.Input(parameter));
    context.SetOutput(parameter[0] == 'X' ? "Out" : "ParamOut", meta);
    context.SetOutput("XShape", meta);
  }
  return Status::Ok();
}

Status InferReshape(InferShapeContext& context) {
  MR_ASSIGN(VarMeta meta, context.Input("X"));
  context.SetOutput("XShape", meta);
  meta.dims = Dims(std::span<const int64_t>(context.op().Ints("shape")));
  context.SetOutput("Out", meta);
  return Status::Ok();
}

/// Gradients look like the variables that they are gradients of; those of tables are rows.
Status InferStubGradients(InferShapeContext& context) {
  for (const OpDesc::Var& output : context.op().desc().outputs()) {
    const std::string input = output.parameter().substr(0, output.parameter().find("@GRAD"));
    for (int i = 0; i < output.arguments_size(); ++i) {
      VarMeta meta;
      if (context.HasInput(input)) {
        MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs(input));
        meta = metas[static_cast<size_t>(i) < metas.size() ? static_cast<size_t>(i) : 0];
      }
      const std::string& type = context.op().type();
      const bool is_rows = type.starts_with("lookup_table") || type.starts_with("fused_slots");
      meta.kind = is_rows ? VarType::SELECTED_ROWS : VarType::LOD_TENSOR;
      context.SetOutput(output.parameter(), meta, i);
    }
  }
  return Status::Ok();
}

Status InferFused(InferShapeContext& context) {
  VarMeta out;
  out.dims = {-1, 1};
  context.SetOutput("Out", out);
  out.kind = VarType::RAW;
  context.SetOutput("Rows", out);
  return Status::Ok();
}

template <class... Names>
OpBuilder Add(OpRegistry& registry, const char* type, std::vector<const char*> inputs, std::vector<const char*> outputs,
              InferShapeFn infer) {
  OpBuilder builder = registry.Add(type).Doc("a stub").InferShape(infer);
  for (const char* name : inputs) builder.OptionalInputs(name, "");
  for (const char* name : outputs) builder.OptionalOutputs(name, "");
  return builder;
}

std::vector<OpDesc> GradXY(const GradContext& context) { return {context.GradOp({"X", "Y"}, {}, {"Out"}, {"X", "Y"})}; }
std::vector<OpDesc> GradX(const GradContext& context) { return {context.GradOp({"X"}, {}, {"Out"}, {"X"})}; }
std::vector<OpDesc> GradOut(const GradContext& context) { return {context.GradOp({}, {"Out"}, {"Out"}, {"X"})}; }
std::vector<OpDesc> GradReshape(const GradContext& context) { return {context.GradOp({}, {"XShape"}, {"Out"}, {"X"})}; }
std::vector<OpDesc> GradLookup(const GradContext& context) {
  return {context.GradOp({"Ids", "W"}, {}, {"Out"}, {"W"})};
}
std::vector<OpDesc> GradCrossEntropy(const GradContext& context) {
  return {context.GradOp({"X", "Label"}, {}, {"Y"}, {"X"})};
}

}  // namespace

OpRegistry StubOps() {
  OpRegistry registry;
  for (const char* type : {"lookup_table", "lookup_table_v2"}) {
    Add(registry, type, {"Ids", "W"}, {"Out"}, InferLookup).Grad(GradLookup);
    Add(registry, (std::string(type) + "_grad").c_str(), {"Ids", "W", "Out@GRAD"}, {"W@GRAD"}, InferStubGradients)
        .Gradient();
  }
  Add(registry, "sequence_pool", {"X"}, {"Out", "MaxIndex"}, InferPool).Grad(GradX);
  Add(registry, "concat", {"X"}, {"Out"}, InferConcat).Grad(GradX);
  Add(registry, "mul", {"X", "Y"}, {"Out"}, InferMul).Grad(GradXY);
  Add(registry, "matmul_v2", {"X", "Y"}, {"Out"}, InferMul).Attr("trans_x", false, "").Attr("trans_y", false, "");
  Add(registry, "elementwise_add", {"X", "Y"}, {"Out"}, InferSame).Grad(GradXY);
  Add(registry, "elementwise_mul", {"X", "Y"}, {"Out"}, InferSame).Grad(GradXY);
  Add(registry, "reshape2", {"X"}, {"Out", "XShape"}, InferReshape)
      .Attr("shape", std::vector<int64_t>{}, "")
      .Grad(GradReshape);
  Add(registry, "relu", {"X"}, {"Out"}, InferSame).Grad(GradOut);
  Add(registry, "softmax", {"X"}, {"Out"}, InferSame).Grad(GradOut);
  Add(registry, "cross_entropy", {"X", "Label"}, {"Y"}, InferColumn).Grad(GradCrossEntropy);
  Add(registry, "softmax_with_cross_entropy", {"Logits", "Label"}, {"Softmax", "Loss"}, InferColumn);
  Add(registry, "softmax_with_cross_entropy_grad", {"Label", "Softmax", "Loss@GRAD"}, {"Logits@GRAD"}, InferColumn)
      .Gradient();
  Add(registry, "mean", {"X"}, {"Out"}, InferOne).Grad(GradX);
  Add(registry, "round", {"X"}, {"Out"}, InferSame);
  Add(registry, "sum", {"X"}, {"Out"}, InferSame);
  Add(registry, "fill_constant", {}, {"Out"}, InferOne);
  for (const char* type :
       {"sequence_pool_grad", "concat_grad", "mul_grad", "elementwise_add_grad", "elementwise_mul_grad",
        "reshape2_grad", "relu_grad", "softmax_grad", "cross_entropy_grad", "mean_grad"}) {
    Add(registry, type, {"X", "Y", "Label", "Out", "XShape", "Out@GRAD", "Y@GRAD"}, {"X@GRAD", "Y@GRAD"},
        InferStubGradients)
        .Gradient();
  }
  Add(registry, "sgd", {"Param", "Grad", "LearningRate"}, {"ParamOut"}, InferSame).Optimizer();
  Add(registry, "fused_sgd", {"Param", "Grad", "LearningRate"}, {"ParamOut"}, InferSame).Optimizer().Fused();
  Add(registry, "fused_slots_pool", {"Ids", "W", "Dense"}, {"Out", "Rows"}, InferFused).Fused();
  Add(registry, "fused_slots_pool_grad", {"Ids", "W", "Rows", "Out@GRAD"}, {"W@GRAD"}, InferStubGradients)
      .Gradient()
      .Fused();
  Add(registry, "fused_fc", {"X", "W", "Bias"}, {"Out"}, InferFused).Fused();
  Add(registry, "fused_fc_grad", {"X", "W", "Out", "Out@GRAD"}, {"X@GRAD", "W@GRAD", "Bias@GRAD"}, InferStubGradients)
      .Gradient()
      .Fused();
  return registry;
}

std::string Show(const OpDesc& op) {
  std::string text = op.type() + "(";
  const auto list = [&text](const auto& bindings) {
    for (const OpDesc::Var& binding : bindings) {
      if (binding.arguments_size() == 0) continue;
      if (!text.ends_with('(') && !text.ends_with(' ')) text += ' ';
      text += binding.parameter() + "=";
      for (int i = 0; i < binding.arguments_size(); ++i) text += (i > 0 ? "," : "") + binding.arguments(i);
    }
  };
  list(op.inputs());
  text += text.ends_with('(') ? "-> " : " -> ";
  list(op.outputs());
  return text + ")";
}

std::string Show(const OpList& ops) {
  std::string text;
  for (const OpDesc& op : ops) text += Show(op) + "\n";
  return text;
}

}  // namespace millrace
