#include "model/lowering.h"

namespace millrace {
namespace {

constexpr std::string_view kWhere = "loss";

/// The label as the variable that the loss reads: the slot itself, or its values as floats.
std::optional<std::string> Label(Lowering& lowering, const std::string& name, bool as_float) {
  const SlotSpec* slot = lowering.Slot(kWhere, "label", name);
  if (slot == nullptr) return std::nullopt;
  if (!slot->is_dense || slot->width != 1) {
    lowering.Problem(kWhere, "label: slot \"" + name +
                                 "\" must have one value an instance; set is_dense: true and shape: "
                                 "[-1, 1]");
    return std::nullopt;
  }
  if (slot->type == SlotType::kUint64 && as_float) {
    const std::string cast = name + ".float";
    if (!lowering.main().Has(cast) &&
        !lowering.Append(kWhere, MakeOp("cast", {{"X", {name}}}, {{"Out", {cast}}},
                                        {{"in_dtype", static_cast<int64_t>(VarType::INT64)},
                                         {"out_dtype", static_cast<int64_t>(VarType::FP32)}}))) {
      return std::nullopt;
    }
    return cast;
  }
  if (slot->type == SlotType::kFloat && !as_float) {
    lowering.Problem(kWhere, "label: slot \"" + name +
                                 "\" holds floats, but this kind of loss reads a class; its type "
                                 "must be \"uint64\"");
    return std::nullopt;
  }
  return name;
}

/// [batch, 1], or [batch, two or more]; false, with the mistake noted, otherwise.
bool CheckColumns(Lowering& lowering, const LossDesc& loss, const std::string& in, bool one) {
  const Dims& dims = lowering.main().vars().find(in)->second.dims;
  const bool fits = dims.rank() == 2 && (one ? dims[1] == 1 : dims[1] >= 2);
  if (fits) return true;
  std::string advice;
  if (one && dims.rank() == 2 && dims[1] == 2) advice = "; use CROSS_ENTROPY for two classes";
  if (!one && dims.rank() == 2 && dims[1] == 1) advice = "; use LOG_LOSS or SIGMOID_CROSS_ENTROPY for one output";
  lowering.Problem(kWhere, "in: " + LossDesc::Kind_Name(loss.kind()) + " wants " +
                               (one ? "[batch, 1]" : "[batch, classes]") + ", but \"" + in + "\" is " +
                               dims.ToString() + advice);
  return false;
}

/// Appends the loss of each instance; returns its variable.
std::optional<std::string> PerInstance(Lowering& lowering, const LossDesc& loss, const std::string& in,
                                       const std::string& label, std::string& prediction) {
  const std::string out = "loss.each";
  prediction = in;
  switch (loss.kind()) {
    case LossDesc::CROSS_ENTROPY:
      if (!lowering.Append(kWhere, MakeOp("cross_entropy", {{"X", {in}}, {"Label", {label}}}, {{"Y", {out}}},
                                          {{"soft_label", false}, {"ignore_index", int64_t{-100}}}))) {
        return std::nullopt;
      }
      return out;
    case LossDesc::LOG_LOSS:
      if (!lowering.Append(kWhere, MakeOp("log_loss", {{"Predicted", {in}}, {"Labels", {label}}}, {{"Loss", {out}}},
                                          {{"epsilon", 1e-7f}}))) {
        return std::nullopt;
      }
      return out;
    case LossDesc::SIGMOID_CROSS_ENTROPY:
      prediction = "prediction";
      if (!lowering.Append(kWhere, MakeOp("sigmoid", {{"X", {in}}}, {{"Out", {prediction}}})) ||
          !lowering.Append(kWhere, MakeOp("sigmoid_cross_entropy_with_logits", {{"X", {in}}, {"Label", {label}}},
                                          {{"Out", {out}}}, {{"ignore_index", int64_t{-100}}, {"normalize", false}}))) {
        return std::nullopt;
      }
      return out;
    case LossDesc::SOFTMAX_CROSS_ENTROPY:
      prediction = "prediction";
      if (!lowering.Append(kWhere, MakeOp("softmax_with_cross_entropy", {{"Logits", {in}}, {"Label", {label}}},
                                          {{"Softmax", {prediction}}, {"Loss", {out}}},
                                          {{"soft_label", false}, {"ignore_index", int64_t{-100}}}))) {
        return std::nullopt;
      }
      return out;
    case LossDesc::SQUARED_ERROR: break;
  }
  if (!lowering.Append(kWhere, MakeOp("elementwise_sub", {{"X", {in}}, {"Y", {label}}}, {{"Out", {"loss.difference"}}},
                                      {{"axis", int64_t{-1}}})) ||
      !lowering.Append(kWhere, MakeOp("square", {{"X", {"loss.difference"}}}, {{"Out", {out}}}))) {
    return std::nullopt;
  }
  return out;
}

/// loss = mean + l2 * sum over weights of w^2.
bool AppendPenalty(Lowering& lowering, float l2) {
  std::vector<std::string> terms;
  for (const std::string& weight : lowering.weights()) {
    const std::string square = weight + ".square";
    terms.push_back(weight + ".square_sum");
    if (!lowering.Append(kWhere, MakeOp("square", {{"X", {weight}}}, {{"Out", {square}}})) ||
        !lowering.Append(kWhere,
                         MakeOp("reduce_sum", {{"X", {square}}}, {{"Out", {terms.back()}}},
                                {{"dim", std::vector<int64_t>{0}}, {"keep_dim", false}, {"reduce_all", true}}))) {
      return false;
    }
  }
  return lowering.Append(kWhere, MakeOp("sum", {{"X", terms}}, {{"Out", {"loss.square_sum"}}})) &&
         lowering.Append(kWhere, MakeOp("scale", {{"X", {"loss.square_sum"}}}, {{"Out", {"loss.l2"}}},
                                        {{"scale", l2}, {"bias", 0.0f}, {"bias_after_scale", true}})) &&
         lowering.Append(kWhere,
                         MakeOp("elementwise_add", {{"X", {"loss.mean"}}, {"Y", {"loss.l2"}}}, {{"Out", {"loss"}}},
                                {{"axis", int64_t{-1}}}),
                         OpRole::kLoss);
}

}  // namespace

LoweredLoss LowerLoss(Lowering& lowering) {
  const ModelDesc& model = lowering.model();
  lowering.Enter("model.loss");
  if (!model.has_loss()) {
    lowering.Problem(kWhere, "missing; add loss { kind: ... in: \"LAYER\" label: \"SLOT\" }");
    return {};
  }
  const LossDesc& loss = model.loss();
  const bool is_class = loss.kind() == LossDesc::CROSS_ENTROPY || loss.kind() == LossDesc::SOFTMAX_CROSS_ENTROPY;
  if (!(loss.l2() >= 0)) lowering.Problem(kWhere, "l2: must not be negative; " + std::to_string(loss.l2()));
  const std::optional<std::string> in = lowering.Input(kWhere, "in", loss.in());
  if (loss.label().empty()) {
    lowering.Problem(kWhere, "label: names no slot");
    return {};
  }
  const std::optional<std::string> label = Label(lowering, loss.label(), !is_class);
  if (!in || !label || !CheckColumns(lowering, loss, *in, !is_class)) return {};
  LoweredLoss lowered;
  const std::optional<std::string> each = PerInstance(lowering, loss, *in, *label, lowered.prediction);
  if (!each) return {};
  const bool has_penalty = loss.l2() > 0 && !lowering.weights().empty();
  const std::string mean = has_penalty ? "loss.mean" : "loss";
  const OpRole role = has_penalty ? OpRole::kForward : OpRole::kLoss;
  if (!lowering.Append(kWhere, MakeOp("mean", {{"X", {*each}}}, {{"Out", {mean}}}), role)) return {};
  if (has_penalty && !AppendPenalty(lowering, loss.l2())) return {};
  lowered.loss = "loss";
  return lowered;
}

}  // namespace millrace
