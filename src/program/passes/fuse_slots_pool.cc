// lookup_table(_v2), sequence_pool(, reshape2) of one slot, and their gradients, become one fused_slots_pool of one
// slot; merge_slots_pools.cc then joins what a concat sets side by side.
#include <algorithm>

#include "program/passes/op_graph.h"

namespace millrace {
namespace {

/// The operators of one slot; -1 where there is none.
struct Chain {
  int lookup = -1;
  int pool = -1;
  int reshape = -1;
  int lookup_grad = -1;
  int pool_grad = -1;
  int reshape_grad = -1;
  std::string out;       ///< what the chain gives
  std::string out_grad;  ///< and its gradient; empty without a backward part
};

bool IsFusedPoolType(std::string type) {
  std::transform(type.begin(), type.end(), type.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  return type == "SUM" || type == "AVERAGE" || type == "SQRT";
}

/// Finds the forward part; false when it is anything but a plain chain.
bool MatchForward(const OpGraph& graph, Chain& chain) {
  const OpDesc& lookup = graph.op(chain.lookup);
  const std::string rows = OnlyOutput(lookup, "Out");
  const VarMeta* ids = graph.FindMeta(OnlyInput(lookup, "Ids"));
  const VarMeta* table = graph.FindMeta(OnlyInput(lookup, "W"));
  if (ids == nullptr || ids->lod_level != 1 || table == nullptr || table->dims.rank() != 2) return false;
  chain.pool = graph.ReaderOfType(rows, "sequence_pool");
  if (chain.pool < 0) return false;
  const OpDesc& pool = graph.op(chain.pool);
  if (!IsFusedPoolType(StringAttr(pool, "pooltype", "AVERAGE")) || FloatAttr(pool, "pad_value", 0) != 0) return false;
  for (const std::string& index : OutputArguments(pool, "MaxIndex")) {
    if (graph.IsKept(index) || !graph.Readers(index).empty()) return false;
  }
  chain.out = OnlyOutput(pool, "Out");
  if (lookup.type() == "lookup_table") return true;
  // lookup_table_v2 gives [n, 1, D], so its pool is a [B, 1, D] that a reshape2 flattens.
  chain.reshape = graph.ReaderOfType(chain.out, "reshape2");
  if (chain.reshape < 0 || !graph.IsPrivate(chain.out, {chain.reshape})) return false;
  const OpDesc& reshape = graph.op(chain.reshape);
  if (!InputArguments(reshape, "Shape").empty() || !InputArguments(reshape, "ShapeTensor").empty()) return false;
  const std::vector<int64_t> shape = IntsAttr(reshape, "shape");
  chain.out = OnlyOutput(reshape, "Out");
  return shape.size() == 2 && shape[0] == -1 && shape[1] == table->dims[1];
}

/// Finds the backward part, if the chain has one; false when it is there but not plain.
bool MatchBackward(const OpGraph& graph, Chain& chain) {
  const std::string rows = OnlyOutput(graph.op(chain.lookup), "Out");
  chain.pool_grad = graph.ReaderOfType(rows, "sequence_pool_grad");
  if (!graph.IsPrivate(rows, {chain.pool, chain.pool_grad})) return false;
  const std::string shape = chain.reshape < 0 ? "" : OnlyOutput(graph.op(chain.reshape), "XShape");
  if (chain.pool_grad < 0) return shape.empty() || (!graph.IsKept(shape) && graph.Readers(shape).empty());

  const std::string rows_grad = OnlyOutput(graph.op(chain.pool_grad), "X@GRAD");
  const std::string lookup_grad = graph.op(chain.lookup).type() + "_grad";
  chain.lookup_grad = graph.ReaderOfType(rows_grad, lookup_grad);
  if (chain.lookup_grad < 0 || !graph.IsPrivate(rows_grad, {chain.lookup_grad})) return false;
  const VarMeta* table_grad = graph.FindMeta(OnlyOutput(graph.op(chain.lookup_grad), "W@GRAD"));
  if (table_grad == nullptr || table_grad->kind != VarType::SELECTED_ROWS) return false;

  chain.out_grad = OnlyInput(graph.op(chain.pool_grad), "Out@GRAD");
  if (chain.reshape < 0) return !chain.out_grad.empty();
  chain.reshape_grad = graph.OnlyWriter(chain.out_grad);
  if (chain.reshape_grad < 0 || graph.type(chain.reshape_grad) != "reshape2_grad") return false;
  if (!graph.IsPrivate(chain.out_grad, {chain.pool_grad})) return false;
  if (OnlyInput(graph.op(chain.reshape_grad), "XShape") != shape) return false;
  if (!graph.IsPrivate(shape, {chain.reshape_grad})) return false;
  chain.out_grad = OnlyInput(graph.op(chain.reshape_grad), "Out@GRAD");
  return !chain.out_grad.empty();
}

OpDesc PoolOp(const OpGraph& graph, const Chain& chain) {
  const OpDesc& lookup = graph.op(chain.lookup);
  OpDesc op;
  op.set_type("fused_slots_pool");
  SetInput(op, "Ids", InputArguments(lookup, "Ids"));
  SetInput(op, "W", InputArguments(lookup, "W"));
  SetOutput(op, "Out", {chain.out});
  SetAttr(op, "pooltype", StringAttr(graph.op(chain.pool), "pooltype", "AVERAGE"));
  SetAttr(op, "padding_idx", IntAttr(lookup, "padding_idx", -1));
  if (const OpDesc::Attr* fixed = FindAttr(lookup, "update_padding"); fixed != nullptr) *op.add_attrs() = *fixed;
  if (const int64_t salt = IntAttr(lookup, "slot_salt", 0); salt != 0) {
    SetAttr(op, "slot_salts", std::vector<int64_t>{salt});
  }
  if (FindAttr(lookup, "out_of_range") != nullptr) {
    SetAttr(op, "out_of_range", StringAttr(lookup, "out_of_range", ""));
  }
  return op;
}

void Fuse(OpGraph& graph, const Chain& chain) {
  OpDesc fused = PoolOp(graph, chain);
  if (chain.lookup_grad >= 0) {
    OpDesc grad = fused;
    grad.set_type("fused_slots_pool_grad");
    grad.clear_outputs();
    SetInput(grad, "Rows", {RowsName(chain.out)});
    SetInput(grad, "Out@GRAD", {chain.out_grad});
    SetOutput(grad, "W@GRAD", OutputArguments(graph.op(chain.lookup_grad), "W@GRAD"));
    SetOutput(fused, "Rows", {RowsName(chain.out)});
    graph.Replace(chain.lookup_grad, std::move(grad));
    graph.Remove(chain.pool_grad);
    if (chain.reshape_grad >= 0) graph.Remove(chain.reshape_grad);
  }
  graph.Remove(chain.lookup);
  if (chain.reshape >= 0) graph.Remove(chain.pool);
  graph.Replace(chain.reshape >= 0 ? chain.reshape : chain.pool, std::move(fused));
}

}  // namespace

void FuseSlotsPool(OpGraph& graph) {
  for (int i = 0; i < graph.size() && !graph.is_stopped(); ++i) {
    if (graph.type(i) != "lookup_table" && graph.type(i) != "lookup_table_v2") continue;
    Chain chain;
    chain.lookup = i;
    if (MatchForward(graph, chain) && MatchBackward(graph, chain)) Fuse(graph, chain);
  }
}

}  // namespace millrace
