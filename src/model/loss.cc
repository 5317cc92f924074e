#include <glog/logging.h>

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
                                 "\" must have one value an example; set is_dense: true and shape: "
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
bool CheckColumns(Lowering& lowering, const std::string& kind, const std::string& in, bool one) {
  const Dims& dims = lowering.main().vars().find(in)->second.dims;
  const bool fits = dims.rank() == 2 && (one ? dims[1] == 1 : dims[1] >= 2);
  if (fits) return true;
  std::string advice;
  if (one && dims.rank() == 2 && dims[1] == 2) advice = "; use CROSS_ENTROPY for two classes";
  if (!one && dims.rank() == 2 && dims[1] == 1) advice = "; use LOG_LOSS or SIGMOID_CROSS_ENTROPY for one output";
  lowering.Problem(kWhere, "in: " + kind + " wants " + (one ? "[batch, 1]" : "[batch, classes]") + ", but \"" + in +
                               "\" is " + dims.ToString() + advice);
  return false;
}

/// The variables that a loss reads; nullopt, with mistakes noted, where they do not fit it.
std::optional<std::vector<std::string>> LossInputs(Lowering& lowering, const LossKind& kind, const std::string& name) {
  const LossDesc& loss = lowering.model().loss();
  std::vector<std::string> inputs;
  for (const std::string& in : loss.in()) {
    if (const std::optional<std::string> input = lowering.Input(kWhere, "in", in)) inputs.push_back(*input);
  }
  if (loss.in().empty()) lowering.Problem(kWhere, "in: names no layer or slot");
  if (kind.reads != LossKind::Reads::kAny && loss.in_size() > 1) {
    lowering.Problem(kWhere, "in: " + name + " reads one layer, and these are " + std::to_string(loss.in_size()));
    return std::nullopt;
  }
  if (loss.in().empty() || static_cast<int>(inputs.size()) < loss.in_size()) return std::nullopt;
  return inputs;
}

constexpr std::string_view kEach = "loss.each";

/// What one operator gives.
std::optional<ExampleLoss> OfOp(Lowering& lowering, OpDesc op, std::string prediction) {
  if (!lowering.Append(kWhere, std::move(op))) return std::nullopt;
  return ExampleLoss{std::string(kEach), {std::move(prediction)}};
}

std::optional<ExampleLoss> CrossEntropy(Lowering& lowering, const LossPart& part) {
  return OfOp(lowering,
              MakeOp("cross_entropy", {{"X", part.in}, {"Label", {part.label}}}, {{"Y", {std::string(kEach)}}},
                     {{"soft_label", false}, {"ignore_index", int64_t{-100}}}),
              part.in[0]);
}

std::optional<ExampleLoss> LogLoss(Lowering& lowering, const LossPart& part) {
  return OfOp(lowering,
              MakeOp("log_loss", {{"Predicted", part.in}, {"Labels", {part.label}}}, {{"Loss", {std::string(kEach)}}},
                     {{"epsilon", 1e-7f}}),
              part.in[0]);
}

std::optional<ExampleLoss> SigmoidCrossEntropy(Lowering& lowering, const LossPart& part) {
  if (!lowering.Append(kWhere, MakeOp("sigmoid", {{"X", part.in}}, {{"Out", {"prediction"}}}))) return std::nullopt;
  return OfOp(lowering,
              MakeOp("sigmoid_cross_entropy_with_logits", {{"X", part.in}, {"Label", {part.label}}},
                     {{"Out", {std::string(kEach)}}}, {{"ignore_index", int64_t{-100}}, {"normalize", false}}),
              "prediction");
}

std::optional<ExampleLoss> SoftmaxCrossEntropy(Lowering& lowering, const LossPart& part) {
  return OfOp(lowering,
              MakeOp("softmax_with_cross_entropy", {{"Logits", part.in}, {"Label", {part.label}}},
                     {{"Softmax", {"prediction"}}, {"Loss", {std::string(kEach)}}},
                     {{"soft_label", false}, {"ignore_index", int64_t{-100}}}),
              "prediction");
}

std::optional<ExampleLoss> SquaredError(Lowering& lowering, const LossPart& part) {
  if (!lowering.Append(kWhere, MakeOp("elementwise_sub", {{"X", part.in}, {"Y", {part.label}}},
                                      {{"Out", {"loss.difference"}}}, {{"axis", int64_t{-1}}}))) {
    return std::nullopt;
  }
  return OfOp(lowering, MakeOp("square", {{"X", {"loss.difference"}}}, {{"Out", {std::string(kEach)}}}), part.in[0]);
}

/// Has the kind append its operators, and looks at what it says that they give.
std::optional<ExampleLoss> LowerExamples(Lowering& lowering, const LossKind& kind, const std::string& name,
                                         const LossPart& part) {
  std::optional<ExampleLoss> lowered;
  const std::string who = "loss of the class \"" + name + "\"";
  const bool is_lowered = LowerClass(lowering, kWhere, who, [&] {
    lowered = kind.lower(lowering, part);
    return lowered.has_value();
  });
  if (!is_lowered) return std::nullopt;
  if (lowered->predictions.empty()) {
    lowering.Problem(kWhere, "the " + who + " gave no prediction");
    return std::nullopt;
  }
  const VarMetas& vars = lowering.main().vars();
  const auto check = [&](const std::string& var, bool one) {
    const auto found = vars.find(var);
    if (found == vars.end()) return "nothing wrote it";
    const VarMeta& meta = found->second;
    const bool fits = meta.dims.rank() == 2 && (!one || meta.dims[1] == 1) && meta.dtype == DType::kFloat32;
    return fits ? "" : one ? "it is no [batch, 1] of floats" : "it is no [batch, columns] of floats";
  };
  const auto expect = [&](const std::string& what, const std::string& var, bool one) {
    const std::string wrong = check(var, one);
    if (!wrong.empty()) lowering.Problem(kWhere, "the " + who + " gave \"" + var + "\" as " + what + ", but " + wrong);
    return wrong.empty();
  };
  bool fits = expect("the loss of each example", lowered->each, true);
  for (const std::string& prediction : lowered->predictions) fits = expect("a prediction", prediction, false) && fits;
  if (!fits) return std::nullopt;
  return lowered;
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
  if (loss.has_kind() && loss.has_class_name()) {
    lowering.Problem(kWhere,
                     "class_name: the loss has a kind, " + LossDesc::Kind_Name(loss.kind()) + "; leave one out");
    return {};
  }
  const std::string name = loss.has_class_name() ? loss.class_name() : LossDesc::Kind_Name(loss.kind());
  const Result<const LossKind*> found = lowering.parts().losses.Get(name);
  if (!found.ok()) {
    lowering.Problem(kWhere, "class_name: " + found.status().message());
    return {};
  }
  const LossKind& kind = **found;
  const std::optional<PartAttrs> attrs = ReadPartAttrs(lowering, kWhere, loss.attrs(), kind.attrs, name);
  if (!(loss.l2() >= 0)) lowering.Problem(kWhere, "l2: must not be negative; " + std::to_string(loss.l2()));
  const std::optional<std::vector<std::string>> in = LossInputs(lowering, kind, name);
  if (loss.label().empty()) {
    lowering.Problem(kWhere, "label: names no slot");
    return {};
  }
  const std::optional<std::string> label = Label(lowering, loss.label(), !kind.is_of_classes);
  if (!in || !label || !attrs) return {};
  using Reads = LossKind::Reads;
  if (kind.reads != Reads::kAny && !CheckColumns(lowering, name, (*in)[0], kind.reads == Reads::kColumn)) return {};
  std::optional<ExampleLoss> lowered = LowerExamples(lowering, kind, name, {*in, *label, *attrs});
  if (!lowered) return {};
  const bool has_penalty = loss.l2() > 0 && !lowering.weights().empty();
  const std::string mean = has_penalty ? "loss.mean" : "loss";
  const OpRole role = has_penalty ? OpRole::kForward : OpRole::kLoss;
  if (!lowering.Append(kWhere, MakeOp("mean", {{"X", {lowered->each}}}, {{"Out", {mean}}}), role)) return {};
  if (has_penalty && !AppendPenalty(lowering, loss.l2())) return {};
  return {"loss", std::move(lowered->predictions)};
}

void RegisterBuiltinLosses(LossRegistry* losses) {
  using Reads = LossKind::Reads;
  const auto add = [losses](const char* name, const char* doc, LossKind kind) {
    CHECK(losses->Add(name, doc, std::move(kind)).ok()) << name;
  };
  add("CROSS_ENTROPY", "of probabilities of classes", {Reads::kClasses, true, CrossEntropy});
  add("LOG_LOSS", "of the probability of a click", {Reads::kColumn, false, LogLoss});
  add("SIGMOID_CROSS_ENTROPY", "of a logit", {Reads::kColumn, false, SigmoidCrossEntropy});
  add("SOFTMAX_CROSS_ENTROPY", "of logits of classes", {Reads::kClasses, true, SoftmaxCrossEntropy});
  add("SQUARED_ERROR", "square of the difference to the label", {Reads::kColumn, false, SquaredError});
}

}  // namespace millrace
