#include "program/passes/fusion.h"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "program/passes/op_graph.h"

namespace millrace {
namespace {

std::unordered_set<std::string_view> Written(const OpList& ops) {
  std::unordered_set<std::string_view> names;
  for (const OpDesc& op : ops) {
    for (const OpDesc::Var& output : op.outputs()) names.insert(output.arguments().begin(), output.arguments().end());
  }
  return names;
}

/// Forgets the variables that `before` wrote and `after` does not.
void DropUnwritten(const OpList& before, const OpList& after, VarMetas& vars) {
  const std::unordered_set<std::string_view> written = Written(after);
  for (const OpDesc& op : before) {
    for (const OpDesc::Var& output : op.outputs()) {
      for (const std::string& name : output.arguments()) {
        if (written.contains(name)) continue;
        const auto it = vars.find(name);
        if (it != vars.end() && !it->second.persistable) vars.erase(it);
      }
    }
  }
}

}  // namespace

Status ApplyFusionPasses(OpList& ops, VarMetas& vars, const OpRegistry& registry,
                         const std::vector<std::string>& fetches, const std::stop_token& stop) {
  const auto stopped = [&stop] { return stop.stop_requested(); };
  Status cancelled = Cancelled("stopped while fusing operators");
  const OpList before = ops;
  OpGraph graph(std::move(ops), vars, fetches, stop);
  if (registry.Find("fused_slots_pool") != nullptr && registry.Find("fused_slots_pool_grad") != nullptr) {
    FuseSlotsPool(graph);
    if (stopped()) return cancelled;
    MergeSlotsPools(graph);
  }
  if (stopped()) return cancelled;
  if (registry.Find("softmax_with_cross_entropy") != nullptr) FuseSoftmaxLoss(graph);
  if (registry.Find("fused_fc") != nullptr && registry.Find("fused_fc_grad") != nullptr) FuseFc(graph);
  if (stopped()) return cancelled;
  FuseOptimizers(graph, registry);
  ops = std::move(graph).Take();

  DropUnwritten(before, ops, vars);
  for (const OpDesc& op : ops) {
    const OpInfo* info = registry.Find(op.type());
    if (info == nullptr || !info->is_fused) continue;
    MR_TRY(InferShapes(OpView(op, *info), vars, registry));
  }
  return Status::Ok();
}

}  // namespace millrace
