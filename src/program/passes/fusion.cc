#include "program/passes/fusion.h"

#include <set>
#include <utility>

#include "program/passes/op_graph.h"

namespace millrace {
namespace {

std::set<std::string> Written(const std::vector<OpDesc>& ops) {
  std::set<std::string> names;
  for (const OpDesc& op : ops) {
    for (const OpDesc::Var& output : op.outputs()) names.insert(output.arguments().begin(), output.arguments().end());
  }
  return names;
}

}  // namespace

Status ApplyFusionPasses(std::vector<OpDesc>& ops, VarMetas& vars, const OpRegistry& registry,
                         const std::vector<std::string>& fetches, const std::stop_token& stop) {
  const auto stopped = [&stop] { return stop.stop_requested(); };
  const Status cancelled = Cancelled("stopped while fusing operators");
  const std::set<std::string> written_before = Written(ops);
  OpGraph graph(std::move(ops), vars, fetches);
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

  const std::set<std::string> written = Written(ops);
  for (const std::string& name : written_before) {
    const auto it = vars.find(name);
    if (it != vars.end() && !it->second.persistable && !written.contains(name)) vars.erase(it);
  }
  for (const OpDesc& op : ops) {
    const OpInfo* info = registry.Find(op.type());
    if (info == nullptr || !info->is_fused) continue;
    MR_TRY(InferShapes(OpView(op, *info), vars));
  }
  return Status::Ok();
}

}  // namespace millrace
