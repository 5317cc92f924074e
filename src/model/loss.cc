#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/numbers.h"
#include "model/lowering.h"
#include "program/model_defaults.h"

namespace millrace {
namespace {

constexpr std::string_view kWhere = "loss";

/// One of the job's losses while it is lowered.
struct LossContext {
  const LossDesc& desc;
  std::string where;     ///< what mistakes begin with
  std::string variable;  ///< its mean: "loss", of several "loss.income"
  std::string suffix;    ///< of other names: nothing, of several ".income"
  bool is_thinned;       ///< whether model.downsample is to be made good

  std::string Var(const char* part) const { return variable + "." + part; }
};

/// Appends an operator that makes the weights `out` of what is bound, and, where it is not empty, `label_out`.
bool AppendWeights(Lowering& lowering, const std::string& where, const ExampleWeights& weights, const std::string& out,
                   const std::string& label_out) {
  Bound inputs;
  if (!weights.label.empty()) inputs.push_back({"Label", {weights.label}});
  if (!weights.sample_weight.empty()) inputs.push_back({"Weight", {weights.sample_weight}});
  if (!weights.mask.empty()) inputs.push_back({"Mask", {weights.mask}});
  if (!weights.thinned.empty()) inputs.push_back({"Thinned", {weights.thinned}});
  Bound outputs = {{"Out", {out}}};
  if (!label_out.empty()) outputs.push_back({"LabelOut", {label_out}});
  Attrs attrs = {{"is_test", false}};
  if (!weights.class_weight.empty()) attrs.push_back({"class_weight", weights.class_weight});
  if (!weights.thinned.empty()) {
    attrs.push_back({"thinned_label", weights.thinned_value});
    attrs.push_back({"rate", weights.rate});
  }
  if (!weights.loss.empty()) attrs.push_back({"loss", weights.loss});
  return lowering.Append(where, MakeOp("example_weights", inputs, outputs, attrs));
}

/// Notes mistakes in what the loss says of weights; the weights, with nothing in them where it says nothing.
std::optional<ExampleWeights> WeightsOf(Lowering& lowering, const LossContext& loss, const std::string& kind,
                                        std::optional<int64_t> classes) {
  const LossDesc& desc = loss.desc;
  ExampleWeights weights;
  const bool is_weighted = lowering.model().downsample().correction() == DownsampleDesc::WEIGHT;
  if (loss.is_thinned && is_weighted) weights = ThinnedOf(lowering.model());
  bool fits = true;
  const auto slot = [&](const char* field, const std::string& name, std::string* to) {
    if (name.empty()) return;
    fits = lowering.OneValueSlot(loss.where, field, name) != nullptr && fits;
    *to = name;
  };
  slot("sample_weight", desc.sample_weight(), &weights.sample_weight);
  slot("mask", desc.mask(), &weights.mask);
  weights.class_weight = {desc.class_weight().begin(), desc.class_weight().end()};
  const auto given = static_cast<int64_t>(weights.class_weight.size());
  const auto refuse = [&](const std::string& what) {
    lowering.Problem(loss.where, "class_weight: " + what);
    fits = false;
  };
  if (given > 0 && kind == "SQUARED_ERROR") {
    refuse("SQUARED_ERROR meets values and has no classes; leave class_weight out");
  } else if (given > 0 && classes.has_value() && given != *classes) {
    refuse(kind + " has " + std::to_string(*classes) + " classes here, and these are weights of " +
           std::to_string(given));
  }
  const auto is_above_zero = [](float weight) { return weight > 0; };
  if (given > 0 && std::none_of(weights.class_weight.begin(), weights.class_weight.end(), is_above_zero)) {
    refuse("no class has a weight above 0: nothing would be learnt");
  }
  if (!fits) return std::nullopt;
  if (given > 0) weights.label = desc.label();
  return weights;
}

/// The variable of the label's slot as the loss reads it: the slot itself, or its values as floats.
std::optional<std::string> Label(Lowering& lowering, const LossContext& loss, const SlotSpec& slot,
                                 const std::string& variable, bool as_float) {
  if (slot.type != SlotType::kUint64 || !as_float) return variable;
  std::string cast = variable + ".float";
  if (!lowering.main().Has(cast) &&
      !lowering.Append(loss.where, MakeOp("cast", {{"X", {variable}}}, {{"Out", {cast}}},
                                          {{"in_dtype", static_cast<int64_t>(VarType::INT64)},
                                           {"out_dtype", static_cast<int64_t>(VarType::FP32)}}))) {
    return std::nullopt;
  }
  return cast;
}

/// The slot of the label; null, with the mistake noted, where the loss cannot read it. `kind` may be null.
const SlotSpec* LabelSlot(Lowering& lowering, const LossContext& context, const LossKind* kind,
                          const std::string& name) {
  const std::string& label = context.desc.label();
  if (label.empty()) {
    lowering.Missing(context.where, "label: the loss needs a label, a slot: label: \"label\"");
    return nullptr;
  }
  const SlotSpec* slot = lowering.OneValueSlot(context.where, "label", label);
  if (slot == nullptr || kind == nullptr || !kind->is_of_classes || slot->type == SlotType::kUint64) return slot;
  lowering.Problem(context.where, "label: slot \"" + label + "\" holds floats, but " + name + " reads a class (" +
                                      lowering.IdAdvice() + ")");
  return nullptr;
}

/// [batch, 1], or [batch, two or more]; false, with the mistake noted, otherwise.
bool CheckColumns(Lowering& lowering, const std::string& where, const std::string& kind, const std::string& in,
                  bool one) {
  const Dims& dims = lowering.main().vars().find(in)->second.dims;
  const bool fits = dims.rank() == 2 && (one ? dims[1] == 1 : dims[1] >= 2);
  if (fits) return true;
  std::string advice;
  if (one && dims.rank() == 2 && dims[1] == 2) advice = "; use CROSS_ENTROPY for two classes";
  if (!one && dims.rank() == 2 && dims[1] == 1) advice = "; use LOG_LOSS or SIGMOID_CROSS_ENTROPY for one output";
  lowering.Misfit(where, "in: " + kind + " wants " + (one ? "[batch, 1]" : "[batch, classes]") + ", but \"" + in +
                             "\" is " + dims.ToString() + advice);
  return false;
}

/// The variables that a loss reads; nullopt, with mistakes noted, where they do not fit it. `kind` may be null.
std::optional<std::vector<std::string>> LossInputs(Lowering& lowering, const LossContext& context, const LossKind* kind,
                                                   const std::string& name) {
  const LossDesc& loss = context.desc;
  const std::string& where = context.where;
  if (loss.in().empty()) {
    lowering.Missing(where, "in: the loss needs an input, the layer that predicts: in: \"...\"");
    return std::nullopt;
  }
  std::optional<std::vector<std::string>> inputs = lowering.Inputs(where, loss.in(), 1);
  if (kind == nullptr || kind->reads == LossKind::Reads::kAny || loss.in_size() == 1) return inputs;
  lowering.Problem(where, "in: " + name + " reads one layer, and these are " + std::to_string(loss.in_size()));
  return std::nullopt;
}

/// What one operator, which writes part.each(), gives.
std::optional<ExampleLoss> OfOp(Lowering& lowering, const LossPart& part, OpDesc op, std::string prediction) {
  if (!lowering.Append(part.where, std::move(op))) return std::nullopt;
  return ExampleLoss{part.each(), {std::move(prediction)}};
}

std::optional<ExampleLoss> CrossEntropy(Lowering& lowering, const LossPart& part) {
  return OfOp(lowering, part,
              MakeOp("cross_entropy", {{"X", part.in}, {"Label", {part.label}}}, {{"Y", {part.each()}}},
                     {{"soft_label", false}, {"ignore_index", int64_t{-100}}}),
              part.in[0]);
}

/// The share p with its odds times a factor m: m p / (m p + 1 - p).
bool ShiftShare(Lowering& lowering, const LossPart& part) {
  const std::string odds = part.prediction + ".odds";
  const std::string rest = part.prediction + ".rest";
  const std::string whole = part.prediction + ".whole";
  const auto scale = [&](const std::string& out, float factor, float bias) {
    return MakeOp("scale", {{"X", part.in}}, {{"Out", {out}}},
                  {{"scale", factor}, {"bias", bias}, {"bias_after_scale", true}});
  };
  return lowering.Append(part.where, scale(odds, std::exp(part.logit_shift), 0)) &&
         lowering.Append(part.where, scale(rest, -1, 1)) &&
         lowering.Append(part.where, MakeOp("elementwise_add", {{"X", {odds}}, {"Y", {rest}}}, {{"Out", {whole}}},
                                            {{"axis", int64_t{-1}}})) &&
         lowering.Append(part.where, MakeOp("elementwise_div", {{"X", {odds}}, {"Y", {whole}}},
                                            {{"Out", {part.prediction}}}, {{"axis", int64_t{-1}}}));
}

std::optional<ExampleLoss> LogLoss(Lowering& lowering, const LossPart& part) {
  const bool is_shifted = part.logit_shift != 0;
  if (is_shifted && !ShiftShare(lowering, part)) return std::nullopt;
  return OfOp(lowering, part,
              MakeOp("log_loss", {{"Predicted", part.in}, {"Labels", {part.label}}}, {{"Loss", {part.each()}}},
                     {{"epsilon", 1e-7f}}),
              is_shifted ? part.prediction : part.in[0]);
}

std::optional<ExampleLoss> SigmoidCrossEntropy(Lowering& lowering, const LossPart& part) {
  std::string logit = part.in[0];
  if (part.logit_shift != 0) {
    logit = part.prediction + ".logit";
    if (!lowering.Append(part.where,
                         MakeOp("scale", {{"X", part.in}}, {{"Out", {logit}}},
                                {{"scale", 1.0f}, {"bias", part.logit_shift}, {"bias_after_scale", true}}))) {
      return std::nullopt;
    }
  }
  if (!lowering.Append(part.where, MakeOp("sigmoid", {{"X", {logit}}}, {{"Out", {part.prediction}}}))) {
    return std::nullopt;
  }
  return OfOp(lowering, part,
              MakeOp("sigmoid_cross_entropy_with_logits", {{"X", part.in}, {"Label", {part.label}}},
                     {{"Out", {part.each()}}}, {{"ignore_index", int64_t{-100}}, {"normalize", false}}),
              part.prediction);
}

std::optional<ExampleLoss> SoftmaxCrossEntropy(Lowering& lowering, const LossPart& part) {
  return OfOp(lowering, part,
              MakeOp("softmax_with_cross_entropy", {{"Logits", part.in}, {"Label", {part.label}}},
                     {{"Softmax", {part.prediction}}, {"Loss", {part.each()}}},
                     {{"soft_label", false}, {"ignore_index", int64_t{-100}}}),
              part.prediction);
}

std::optional<ExampleLoss> SquaredError(Lowering& lowering, const LossPart& part) {
  const std::string difference = part.loss + ".difference";
  if (!lowering.Append(part.where, MakeOp("elementwise_sub", {{"X", part.in}, {"Y", {part.label}}},
                                          {{"Out", {difference}}}, {{"axis", int64_t{-1}}}))) {
    return std::nullopt;
  }
  return OfOp(lowering, part, MakeOp("square", {{"X", {difference}}}, {{"Out", {part.each()}}}), part.in[0]);
}

/// Has the kind append its operators, and looks at what it says that they give.
std::optional<ExampleLoss> LowerExamples(Lowering& lowering, const LossKind& kind, const std::string& name,
                                         const LossPart& part) {
  std::optional<ExampleLoss> lowered;
  const std::string who = "loss of the class \"" + name + "\"";
  const bool is_lowered = LowerClass(lowering, part.where, who, [&] {
    lowered = kind.lower(lowering, part);
    return lowered.has_value();
  });
  if (!is_lowered) return std::nullopt;
  if (lowered->predictions.empty()) {
    lowering.Problem(part.where, "the " + who + " gave no prediction");
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
    if (!wrong.empty())
      lowering.Problem(part.where, "the " + who + " gave \"" + var + "\" as " + what + ", but " + wrong);
    return wrong.empty();
  };
  bool fits = expect("the loss of each example", lowered->each, true);
  for (const std::string& prediction : lowered->predictions) fits = expect("a prediction", prediction, false) && fits;
  if (!fits) return std::nullopt;
  return lowered;
}

/// loss.l2 = l2 * sum over weights of w^2.
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
                                        {{"scale", l2}, {"bias", 0.0f}, {"bias_after_scale", true}}));
}

/// The loss of each example times its weight, or, without weights, the loss of each example.
std::optional<std::string> Weighed(Lowering& lowering, const LossContext& loss, const std::string& each,
                                   const std::string& weights) {
  if (weights.empty()) return each;
  std::string weighed = loss.Var("by_weight");
  const bool is_made = lowering.Append(loss.where, MakeOp("elementwise_mul", {{"X", {each}}, {"Y", {weights}}},
                                                          {{"Out", {weighed}}}, {{"axis", int64_t{-1}}}));
  if (!is_made) return std::nullopt;
  return weighed;
}

/// What is added to the logit of the prediction for what `model.downsample` leaves out; nullopt, with the mistake
/// noted, where the prediction cannot be corrected.
std::optional<float> ShiftOf(Lowering& lowering, const LossContext& loss, const std::string& kind) {
  const ExampleWeights thinned = ThinnedOf(lowering.model());
  const DownsampleDesc& desc = lowering.model().downsample();
  if (!loss.is_thinned || thinned.thinned.empty() || desc.correction() != DownsampleDesc::PREDICTION) return 0.0F;
  const std::string otherwise = "; say correction: WEIGHT in model.downsample, or train on all examples";
  if (kind != "SIGMOID_CROSS_ENTROPY" && kind != "LOG_LOSS") {
    lowering.Problem(loss.where, "kind: the prediction of " + kind +
                                     " cannot be corrected for examples that were left out" + otherwise);
    return std::nullopt;
  }
  if (loss.desc.label() != desc.label()) {
    lowering.Problem(loss.where, "label: \"" + loss.desc.label() + "\" is not that of model.downsample, \"" +
                                     desc.label() +
                                     "\", and what leaving those out does to its prediction is not known" + otherwise);
    return std::nullopt;
  }
  return desc.value() == 0 ? std::log(desc.rate()) : -std::log(desc.rate());
}

/// The kind of a loss; null, with the mistake noted, when there is none of its name.
const LossKind* KindOfLoss(Lowering& lowering, const std::string& where, const LossDesc& loss,
                           const std::string& name) {
  if (loss.has_kind() && loss.has_class_name()) {
    lowering.Problem(where, "class_name: the loss has a kind, too; leave one of them out");
    return nullptr;
  }
  return FindClass<LossDesc>(lowering, where, "loss", lowering.parts().losses, name);
}

/// The examples' loss and predictions of one loss; nullopt, with mistakes noted, when it cannot be lowered.
std::optional<LoweredTask> LowerTask(Lowering& lowering, const LossContext& context, std::string* each) {
  const LossDesc& loss = context.desc;
  const std::string& where = context.where;
  const std::string name = loss.has_class_name() ? loss.class_name() : LossDesc::Kind_Name(loss.kind());
  const LossKind* kind = KindOfLoss(lowering, where, loss, name);
  const std::optional<std::vector<std::string>> in = LossInputs(lowering, context, kind, name);
  const SlotSpec* slot = LabelSlot(lowering, context, kind, name);
  using Reads = LossKind::Reads;
  const Reads reads = kind == nullptr ? Reads::kAny : kind->reads;
  const bool fits =
      in && (reads == Reads::kAny || CheckColumns(lowering, where, name, (*in)[0], reads == Reads::kColumn));
  std::optional<int64_t> classes;
  if (reads == Reads::kColumn) classes = 2;
  if (fits && reads == Reads::kClasses) classes = lowering.main().vars().find((*in)[0])->second.dims[1];
  const std::optional<ExampleWeights> weights = WeightsOf(lowering, context, name, classes);
  if (kind == nullptr) return std::nullopt;
  const std::optional<PartAttrs> attrs = ReadPartAttrs(lowering, where, loss.attrs(), kind->attrs, name);
  if (!fits || slot == nullptr || !attrs || !weights) return std::nullopt;

  LoweredTask task;
  task.name = loss.name();
  task.label = loss.label();
  task.variable = context.variable;
  task.by = *weights;
  std::string label = loss.label();
  if (weights->IsAny()) {
    ExampleWeights all = *weights;
    all.loss = loss.name().empty() ? "loss" : loss.name();
    task.weights = context.Var("weights");
    std::string counted;
    if (!all.mask.empty() || !all.sample_weight.empty()) {
      all.label = loss.label();
      counted = label + ".counted" + context.suffix;
    }
    if (!AppendWeights(lowering, where, all, task.weights, counted)) return std::nullopt;
    if (!counted.empty()) label = counted;
  }
  const std::optional<std::string> read = Label(lowering, context, *slot, label, !kind->is_of_classes);
  if (!read) return std::nullopt;
  const std::optional<float> shift = ShiftOf(lowering, context, name);
  if (!shift) return std::nullopt;
  const LossPart part{*in, *read, *attrs, where, context.variable, "prediction" + context.suffix, *shift};
  std::optional<ExampleLoss> lowered = LowerExamples(lowering, *kind, name, part);
  if (!lowered) return std::nullopt;
  task.predictions = std::move(lowered->predictions);
  if (name == "SIGMOID_CROSS_ENTROPY" || name == "SOFTMAX_CROSS_ENTROPY") task.logit = (*in)[0];
  std::optional<std::string> weighed = Weighed(lowering, context, lowered->each, task.weights);
  if (!weighed) return std::nullopt;
  *each = std::move(*weighed);
  return task;
}

/// Notes mistakes in the names of losses; those without a mistake are in `*names`.
void CheckLossNames(Lowering& lowering, std::set<std::string>* names) {
  const auto& losses = lowering.model().loss();
  std::map<std::string, std::string> seen;
  for (int i = 0; i < losses.size(); ++i) {
    const std::string& name = losses[i].name();
    const std::string path = "model.loss[" + std::to_string(i) + "]";
    const std::string where = "loss \"" + name + "\"";
    lowering.Enter(path);
    if (name.empty()) {
      if (losses.size() > 1) lowering.Missing(kWhere, "name: of several losses each needs a name: name: \"click\"");
      continue;
    }
    if (const std::string wrong = NameMistake(name); !wrong.empty()) {
      lowering.Problem(where, "name: " + wrong);
    } else if (const auto [earlier, is_new] = seen.emplace(name, path + ".name"); !is_new) {
      lowering.Taken(where, "name: loss \"" + name + "\" is there already", earlier->second);
    } else if (losses.size() > 1 &&
               (lowering.main().Has("loss." + name) || lowering.main().Has("prediction." + name))) {
      lowering.Problem(
          where, "name: a layer has its variable's name, loss." + name + " or prediction." + name + "; choose another");
    } else {
      names->insert(name);
    }
  }
}

/// Notes mistakes in `model.downsample`.
bool CheckDownsample(Lowering& lowering) {
  if (!lowering.model().has_downsample()) return true;
  lowering.Enter("model.downsample");
  const DownsampleDesc& desc = lowering.model().downsample();
  const size_t mistakes = lowering.mistakes().size();
  if (desc.label().empty()) {
    lowering.Missing("downsample", "label: downsample needs a label, whose examples are left out: label: \"click\"");
  } else {
    (void)lowering.OneValueSlot("downsample", "label", desc.label());
  }
  if (!desc.has_rate()) {
    lowering.Missing("downsample", "rate: downsample needs a rate, the share that stays: rate: 0.1");
  }
  (void)lowering.CheckRanges("downsample", "", desc);
  if (desc.correction() == DownsampleDesc::PREDICTION && desc.value() != 0 && desc.value() != 1) {
    lowering.Problem("downsample",
                     "value: a prediction is corrected for examples of the label 0 or 1; for others say "
                     "correction: WEIGHT");
  }
  return lowering.mistakes().size() == mistakes;
}

/// loss = sum of the losses' means by their weights + penalty.
bool AppendTotal(Lowering& lowering, std::vector<std::string> terms, double l2) {
  const bool has_penalty = l2 > 0 && !lowering.weights().empty();
  if (has_penalty) {
    if (!AppendPenalty(lowering, static_cast<float>(l2))) return false;
    terms.push_back("loss.l2");
  }
  if (terms == std::vector<std::string>{"loss.mean", "loss.l2"}) {
    return lowering.Append(kWhere,
                           MakeOp("elementwise_add", {{"X", {"loss.mean"}}, {"Y", {"loss.l2"}}}, {{"Out", {"loss"}}},
                                  {{"axis", int64_t{-1}}}),
                           OpRole::kLoss);
  }
  return lowering.Append(kWhere, MakeOp("sum", {{"X", terms}}, {{"Out", {"loss"}}}), OpRole::kLoss);
}

}  // namespace

ExampleWeights ThinnedOf(const ModelDesc& model) {
  ExampleWeights weights;
  const DownsampleDesc& desc = model.downsample();
  if (!model.has_downsample() || desc.rate() >= 1) return weights;
  weights.thinned = desc.label();
  weights.thinned_value = desc.value();
  weights.rate = desc.rate();
  return weights;
}

bool AppendWeightsOfMetric(Lowering& lowering, const std::string& where, const ExampleWeights& weights,
                           const std::string& out) {
  return AppendWeights(lowering, where, weights, out, "");
}

LoweredLoss LowerLoss(Lowering& lowering) {
  const ModelDesc& model = lowering.model();
  const bool is_thinned = CheckDownsample(lowering);
  bool is_whole = is_thinned;
  lowering.Enter("model");
  if (model.loss().empty()) {
    lowering.Missing("model", "loss: the model has no loss: loss { kind: LOG_LOSS in: \"...\" label: \"...\" }");
    return {};
  }
  const bool is_one = model.loss_size() == 1;
  std::set<std::string> names;
  CheckLossNames(lowering, &names);
  LoweredLoss all;
  std::vector<std::string> terms;
  double l2 = 0;
  double total_weight = 0;
  const bool is_plain =
      is_one && model.loss(0).weight() == 1 && !(model.loss(0).l2() > 0 && !lowering.weights().empty());
  for (int i = 0; i < model.loss_size(); ++i) {
    const LossDesc& loss = model.loss(i);
    // What a loss without a good name says is judged under a name that nobody can give.
    const bool is_named = names.erase(loss.name()) == 1 || (is_one && loss.name().empty());
    const std::string name = is_named ? loss.name() : "@" + std::to_string(i);
    lowering.Enter("model.loss[" + std::to_string(i) + "]", &loss);
    const std::string suffix = is_one ? "" : "." + name;
    const LossContext context{loss, is_one ? std::string(kWhere) : "loss \"" + loss.name() + "\"", "loss" + suffix,
                              suffix, is_thinned};
    is_whole = lowering.CheckRanges(context.where, "", loss) && is_named && is_whole;
    l2 += static_cast<double>(loss.l2());
    total_weight += static_cast<double>(loss.weight());
    std::string each;
    std::optional<LoweredTask> task = LowerTask(lowering, context, &each);
    is_whole = is_whole && task.has_value();
    if (!task) continue;
    std::string mean = is_one && !is_plain ? "loss.mean" : context.variable;
    const OpRole role = is_plain ? OpRole::kLoss : OpRole::kForward;
    if (!lowering.Append(context.where, MakeOp("mean", {{"X", {each}}}, {{"Out", {mean}}}), role)) return {};
    if (loss.weight() != 1) {
      const std::string share = mean + ".share";
      if (!lowering.Append(context.where,
                           MakeOp("scale", {{"X", {mean}}}, {{"Out", {share}}},
                                  {{"scale", loss.weight()}, {"bias", 0.0f}, {"bias_after_scale", true}}))) {
        return {};
      }
      mean = share;
    }
    terms.push_back(std::move(mean));
    all.tasks.push_back(std::move(*task));
  }
  if (total_weight == 0) {
    lowering.Enter("model.loss[0]");
    lowering.Problem(kWhere, "weight: no loss has a weight above 0: nothing would be learnt");
  }
  lowering.Enter("model");
  if (!is_whole) return {};
  if (!is_plain && !AppendTotal(lowering, std::move(terms), l2)) return {};
  all.loss = "loss";
  return all;
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
