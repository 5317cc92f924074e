// mul or matmul_v2, elementwise_add of a bias, and an activation become fused_fc, their gradients fused_fc_grad.
#include <algorithm>
#include <array>

#include "program/passes/op_graph.h"

namespace millrace {
namespace {

constexpr std::array<std::string_view, 4> kActivations = {"relu", "sigmoid", "tanh", "softmax"};

/// The operators of one fully connected layer; -1 where there is none.
struct Fc {
  int mul = -1;
  int add = -1;
  int act = -1;
  int mul_grad = -1;
  int add_grad = -1;
  int act_grad = -1;
};

bool IsTrue(const OpDesc& op, std::string_view name) {
  const OpDesc::Attr* attr = FindAttr(op, name);
  return attr != nullptr && (attr->b() || attr->i() != 0);
}

/// How many axes of X are the rows of the product: all but the last one of matmul_v2.
int64_t RowAxes(const OpGraph& graph, const OpDesc& mul) {
  return mul.type() == "mul" ? IntAttr(mul, "x_num_col_dims", 1) : graph.FindMeta(OnlyInput(mul, "X"))->dims.rank() - 1;
}

/// A product of rows as they stand and a matrix that is a parameter.
bool IsRowsTimesWeight(const OpGraph& graph, const OpDesc& mul) {
  if (mul.type() != "mul" && mul.type() != "matmul_v2") return false;
  if (IsTrue(mul, "trans_x") || IsTrue(mul, "trans_y")) return false;
  const VarMeta* x = graph.FindMeta(OnlyInput(mul, "X"));
  const VarMeta* w = graph.FindMeta(OnlyInput(mul, "Y"));
  return x != nullptr && x->dims.rank() >= 2 && x->dtype == DType::kFloat32 && x->kind == VarType::LOD_TENSOR &&
         w != nullptr && w->persistable && w->dims.rank() == 2 && RowAxes(graph, mul) == x->dims.rank() - 1 &&
         IntAttr(mul, "y_num_col_dims", 1) == 1;
}

/// A [columns] vector that is added to every row.
bool IsBias(const OpGraph& graph, const OpDesc& add, const OpDesc& mul) {
  const VarMeta* bias = graph.FindMeta(OnlyInput(add, "Y"));
  const VarMeta* w = graph.FindMeta(OnlyInput(mul, "Y"));
  const int64_t axis = IntAttr(add, "axis", -1);
  return bias != nullptr && bias->persistable && bias->dims.rank() == 1 && bias->dims[0] == w->dims[1] &&
         (axis == RowAxes(graph, mul) || axis == -1);
}

/// Finds the gradient operators of mul and add; false when there are some but not as AppendBackward makes them.
bool MatchBackward(const OpGraph& graph, Fc& fc) {
  const std::string product = OnlyOutput(graph.op(fc.mul), "Out");
  const std::string sum = OnlyOutput(graph.op(fc.add), "Out");
  fc.add_grad = graph.ReaderOfType(product, "elementwise_add_grad");
  if (fc.add_grad < 0) return graph.IsPrivate(product, {fc.add});
  const OpDesc& add_grad = graph.op(fc.add_grad);
  const std::string product_grad = OnlyOutput(add_grad, "X@GRAD");
  fc.mul_grad = graph.ReaderOfType(product_grad, std::string(graph.type(fc.mul)) + "_grad");
  return fc.mul_grad >= 0 && graph.IsPrivate(product, {fc.add, fc.add_grad}) &&
         graph.IsPrivate(product_grad, {fc.mul_grad}) && OnlyInput(add_grad, "Y") == OnlyInput(graph.op(fc.add), "Y") &&
         InputArguments(graph.op(fc.mul_grad), "X") == InputArguments(graph.op(fc.mul), "X") &&
         InputArguments(graph.op(fc.mul_grad), "Y") == InputArguments(graph.op(fc.mul), "Y");
}

/// Adds the activation when everything between it and the sum is private to the two.
void MatchActivation(const OpGraph& graph, Fc& fc) {
  const std::string sum = OnlyOutput(graph.op(fc.add), "Out");
  const std::vector<int> readers = graph.Readers(sum);
  if (readers.size() != 1 || !graph.IsPrivate(sum, readers)) return;
  const OpDesc& act = graph.op(readers[0]);
  if (std::find(kActivations.begin(), kActivations.end(), act.type()) == kActivations.end()) return;
  const int64_t axis = IntAttr(act, "axis", -1);
  if (act.type() == "softmax" && axis != -1 && axis != RowAxes(graph, graph.op(fc.mul))) return;
  if (fc.add_grad < 0) {
    fc.act = readers[0];
    return;
  }
  const std::string sum_grad = OnlyInput(graph.op(fc.add_grad), "Out@GRAD");
  const int act_grad = graph.OnlyWriter(sum_grad);
  if (act_grad < 0 || graph.type(act_grad) != act.type() + "_grad" || !graph.IsPrivate(sum_grad, {fc.add_grad})) return;
  if (OnlyInput(graph.op(act_grad), "Out") != OnlyOutput(act, "Out")) return;
  if (OnlyInput(graph.op(act_grad), "Out@GRAD").empty()) return;
  fc.act = readers[0];
  fc.act_grad = act_grad;
}

void Fuse(OpGraph& graph, const Fc& fc) {
  const OpDesc& mul = graph.op(fc.mul);
  const int last = fc.act >= 0 ? fc.act : fc.add;
  const std::string activation = fc.act >= 0 ? std::string(graph.type(fc.act)) : "";
  const std::string out = OnlyOutput(graph.op(last), "Out");
  OpDesc fused;
  fused.set_type("fused_fc");
  SetInput(fused, "X", InputArguments(mul, "X"));
  SetInput(fused, "W", InputArguments(mul, "Y"));
  SetInput(fused, "Bias", InputArguments(graph.op(fc.add), "Y"));
  SetOutput(fused, "Out", {out});
  const int64_t row_axes = RowAxes(graph, mul);
  SetAttr(fused, "in_num_col_dims", row_axes);
  SetAttr(fused, "activation", activation);
  if (fc.add_grad >= 0) {
    const OpDesc& add_grad = graph.op(fc.add_grad);
    const OpDesc& mul_grad = graph.op(fc.mul_grad);
    OpDesc grad;
    grad.set_type("fused_fc_grad");
    SetInput(grad, "X", InputArguments(mul, "X"));
    SetInput(grad, "W", InputArguments(mul, "Y"));
    SetInput(grad, "Out", {out});
    SetInput(grad, "Out@GRAD", InputArguments(fc.act_grad >= 0 ? graph.op(fc.act_grad) : add_grad, "Out@GRAD"));
    const auto copy = [&grad](const OpDesc& from, std::string_view parameter, std::string_view to) {
      const std::string name = OnlyOutput(from, parameter);
      if (!name.empty()) SetOutput(grad, to, {name});
    };
    copy(mul_grad, "X@GRAD", "X@GRAD");
    copy(mul_grad, "Y@GRAD", "W@GRAD");
    copy(add_grad, "Y@GRAD", "Bias@GRAD");
    SetAttr(grad, "in_num_col_dims", row_axes);
    SetAttr(grad, "activation", activation);
    // Where the first of them stood: what it reads is there, and nobody reads what it writes before.
    graph.Remove(fc.mul_grad);
    if (fc.act_grad >= 0) graph.Remove(fc.add_grad);
    graph.Replace(fc.act_grad >= 0 ? fc.act_grad : fc.add_grad, std::move(grad));
  }
  graph.Remove(fc.mul);
  if (fc.act >= 0) graph.Remove(fc.add);
  graph.Replace(last, std::move(fused));
}

}  // namespace

void FuseFc(OpGraph& graph) {
  for (int i = 0; i < graph.size(); ++i) {
    if (!IsRowsTimesWeight(graph, graph.op(i))) continue;
    Fc fc;
    fc.mul = i;
    fc.add = graph.ReaderOfType(OnlyOutput(graph.op(i), "Out"), "elementwise_add");
    if (fc.add < 0 || OnlyInput(graph.op(fc.add), "X") != OnlyOutput(graph.op(i), "Out")) continue;
    if (!IsBias(graph, graph.op(fc.add), graph.op(i)) || !MatchBackward(graph, fc)) continue;
    MatchActivation(graph, fc);
    Fuse(graph, fc);
  }
}

}  // namespace millrace
