#include "model/layer_kinds.h"

namespace millrace {

bool LowerMixture(Lowering& lowering, const LayerPart& part) {
  const MixtureLayer& layer = part.desc.mixture();
  const std::string& name = part.desc.name();
  const std::optional<std::vector<std::string>> in = lowering.Inputs(part.where, layer.in(), 1);
  std::optional<std::string> gate;
  if (layer.gate().empty()) {
    lowering.Missing(part.where, "gate: a mixture needs a gate, the layer with a share for each input: gate: \"g\"");
  } else {
    gate = lowering.Input(part.where, "gate", layer.gate());
  }
  if (!in || !gate) return false;
  const std::vector<std::string>& experts = *in;

  const auto count = static_cast<int64_t>(experts.size());
  const int64_t columns = Columns(lowering, part.where, experts[0]);
  if (columns == 0) return false;
  const VarMetas& vars = lowering.main().vars();
  for (const std::string& expert : experts) {
    const Dims& dims = vars.find(expert)->second.dims;
    if (dims.rank() == 2 && dims[1] == columns) continue;
    lowering.Misfit(part.where, "in: shapes differ: \"" + experts[0] + "\" is [-1, " + std::to_string(columns) +
                                    "], \"" + expert + "\" is " + dims.ToString());
    return false;
  }
  const Dims& gates = vars.find(*gate)->second.dims;
  if (gates.rank() != 2 || gates[1] != count) {
    lowering.Misfit(part.where, "gate: gate needs a column for each of " + std::to_string(count) + " inputs, but \"" +
                                    *gate + "\" is " + gates.ToString());
    return false;
  }
  // [batch, 1, count] x [batch, count, columns]
  return lowering.Append(part.where,
                         MakeOp("stack", {{"X", experts}}, {{"Y", {name + ".experts"}}}, {{"axis", int64_t{1}}})) &&
         lowering.Append(part.where, MakeOp("reshape2", {{"X", {*gate}}},
                                            {{"Out", {name + ".gate"}}, {"XShape", {name + ".gate_shape"}}},
                                            {{"shape", std::vector<int64_t>{-1, 1, count}}})) &&
         lowering.Append(part.where, MakeOp("matmul_v2", {{"X", {name + ".gate"}}, {"Y", {name + ".experts"}}},
                                            {{"Out", {name + ".mixed"}}}, {{"trans_x", false}, {"trans_y", false}})) &&
         lowering.Append(part.where, MakeOp("reshape2", {{"X", {name + ".mixed"}}},
                                            {{"Out", {name}}, {"XShape", {name + ".mixed_shape"}}},
                                            {{"shape", std::vector<int64_t>{-1, columns}}}));
}

}  // namespace millrace
