#include "model/layer_kinds.h"

#include <utility>

namespace millrace {

std::string LayerOps::Append(std::string_view type, const Bound& inputs, std::string out, const Attrs& attrs,
                             std::string_view to, const Bound& more) {
  Bound outputs = {{to, {out}}};
  outputs.insert(outputs.end(), more.begin(), more.end());
  is_whole_ = is_whole_ && lowering_.Append(part_.where, MakeOp(type, inputs, outputs, attrs));
  return out;
}

std::string LayerOps::Reshape(const std::string& x, std::string out, std::vector<int64_t> shape) {
  const std::string kept = out + "@SHAPE";
  return Append("reshape2", {{"X", {x}}}, std::move(out), {{"shape", std::move(shape)}}, "Out", {{"XShape", {kept}}});
}

std::string LayerOps::Transpose(const std::string& x, std::string out, std::vector<int64_t> axes) {
  const std::string kept = out + "@SHAPE";
  return Append("transpose2", {{"X", {x}}}, std::move(out), {{"axis", std::move(axes)}}, "Out", {{"XShape", {kept}}});
}

std::string LayerOps::Product(const std::string& x, const std::string& parameter, const std::string& bias,
                              int64_t units, std::string out) {
  if (!is_whole_) return out;
  const Dims dims = DimsOf(x);
  const int64_t last = dims.rank() - 1;
  const std::string product = bias.empty() ? out : out + "@PRODUCT";
  Append("mul", {{"X", {x}}, {"Y", {Weight(parameter, {dims[-1], units})}}}, product,
         {{"x_num_col_dims", last}, {"y_num_col_dims", int64_t{1}}});
  if (bias.empty()) return out;
  return Append("elementwise_add", {{"X", {product}}, {"Y", {Constant(bias, {units}, 0)}}}, std::move(out),
                {{"axis", last}});
}

std::string LayerOps::Binary(std::string_view type, const std::string& x, const std::string& y, std::string out) {
  return Append(type, {{"X", {x}}, {"Y", {y}}}, std::move(out), {{"axis", int64_t{-1}}});
}

std::string LayerOps::Scale(const std::string& x, std::string out, float factor, float bias) {
  return Append("scale", {{"X", {x}}}, std::move(out), {{"scale", factor}, {"bias", bias}, {"bias_after_scale", true}});
}

std::string LayerOps::MatMul(const std::string& x, const std::string& y, std::string out, bool transpose_y) {
  return Append("matmul_v2", {{"X", {x}}, {"Y", {y}}}, std::move(out), {{"trans_x", false}, {"trans_y", transpose_y}});
}

std::string LayerOps::Activate(const std::string& x, std::string out, Activation act) {
  return Append(ActivationOp(act), {{"X", {x}}}, std::move(out));
}

std::string LayerOps::Weight(const std::string& parameter, const Dims& dims) {
  Initializer init;
  init.set_xavier(true);
  if (is_whole_) lowering_.AddParameter(part_.where, Var(parameter), dims, init, true);
  return Var(parameter);
}

std::string LayerOps::Constant(const std::string& parameter, const Dims& dims, float start) {
  Initializer init;
  init.set_constant(start);
  if (is_whole_) lowering_.AddParameter(part_.where, Var(parameter), dims, init, false);
  return Var(parameter);
}

std::optional<SequenceInput> Sequence(Lowering& lowering, const LayerPart& part, std::string_view field,
                                      const std::string& name) {
  const std::optional<std::string> in = lowering.Input(part.where, field, name);
  if (!in) return std::nullopt;
  const VarMetas& vars = lowering.main().vars();
  const Dims& dims = vars.find(*in)->second.dims;
  SequenceInput sequence{*in, *in + ".mask", 0, 0};
  if (dims.rank() != 3 || !lowering.main().Has(sequence.mask)) {
    lowering.Misfit(part.where, std::string(field) + ": \"" + name +
                                    "\" is no sequence; a history, gru or self_attention layer of one is");
    return std::nullopt;
  }
  sequence.places = dims[1];
  sequence.columns = dims[2];
  return sequence;
}

std::optional<SlotVectors> VectorsOfSlots(Lowering& lowering, const LayerPart& part, const std::string& name, int dim,
                                          int least) {
  const std::optional<std::string> in = lowering.Input(part.where, "in", name);
  const int64_t own = dim > 0 ? dim : lowering.EmbeddingDim(name);
  if (own < 1 && (in || lowering.IsBrokenOther(name))) {
    lowering.Problem(part.where, "in: \"" + name + "\" is no embedding layer, so say the floats per slot: dim: ...");
    return std::nullopt;
  }
  if (!in) return std::nullopt;
  const int64_t columns = Columns(lowering, part.where, *in);
  if (columns == 0) return std::nullopt;
  if (columns % own == 0 && columns / own >= least) return SlotVectors{*in, columns / own, own};
  lowering.Misfit(part.where, "dim: dim must divide the " + std::to_string(columns) + " columns of \"" + *in + "\"" +
                                  (least > 1 ? " into two slots or more" : "") + ", not " + std::to_string(own));
  return std::nullopt;
}

}  // namespace millrace
