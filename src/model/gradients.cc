#include <string>

#include "core/numbers.h"
#include "model/lowering.h"
#include "program/field_traits.h"
#include "program/oneof_names.h"

namespace millrace {
namespace {

const OptimizerDesc& OptimizerOfParam(const Lowering& lowering, const std::string& param) {
  return OptimizerOf(lowering.model(), FindTable(lowering.model(), param));
}

/// How the gradient of a parameter is clipped; null: not at all.
const GradientClip* ClipOf(const Lowering& lowering, const std::string& param) {
  const ParameterRule* rule = lowering.RuleOf(param);
  if (rule != nullptr && rule->has_clip()) return &rule->clip();
  const OptimizerDesc& optimizer = OptimizerOfParam(lowering, param);
  return optimizer.has_clip() ? &optimizer.clip() : nullptr;
}

const Regularization& PenaltyOf(const Lowering& lowering, const std::string& param) {
  const ParameterRule* rule = lowering.RuleOf(param);
  if (rule != nullptr && rule->has_regularization()) return rule->regularization();
  return OptimizerOfParam(lowering, param).regularization();
}

bool IsPenalty(const Regularization& regularization) { return regularization.l1() > 0 || regularization.l2() > 0; }

std::string Where(const std::string& param) { return "parameter \"" + param + "\""; }

/// Appends operators for one parameter after another, into variables named after its gradient.
class GradientOps {
 public:
  explicit GradientOps(Lowering& lowering) : lowering_(lowering) {}

  std::string Append(const std::string& param, std::string_view type, const Bound& inputs, const std::string& out,
                     const Attrs& attrs = {}) {
    lowering_.Append(Where(param), MakeOp(type, inputs, {{"Out", {out}}}, attrs), OpRole::kOptimize);
    return out;
  }
  bool IsSparse(const std::string& name) const {
    const auto it = lowering_.main().vars().find(name);
    return it != lowering_.main().vars().end() && it->second.kind == VarType::SELECTED_ROWS;
  }

 private:
  Lowering& lowering_;
};

/// Each gradient by itself.
void ClipEach(Lowering& lowering, ParamGrad& target, const GradientClip& clip) {
  GradientOps ops(lowering);
  const std::string out = target.grad + "@CLIP";
  if (clip.has_norm()) {
    target.grad = ops.Append(target.param, "clip_by_norm", {{"X", {target.grad}}}, out, {{"max_norm", clip.norm()}});
    return;
  }
  const float least = clip.has_min_value() ? clip.min_value() : -clip.value();
  target.grad = ops.Append(target.param, "clip", {{"X", {target.grad}}}, out, {{"min", least}, {"max", clip.value()}});
}

/// All of these together: g * most / max(most, |all|).
void ClipTogether(Lowering& lowering, const std::vector<ParamGrad*>& targets, float most) {
  GradientOps ops(lowering);
  const std::string stem = "gradients@";
  // Norms of norms: squares of large gradients are beyond single precision, and an infinite norm would clip all to 0.
  const Attrs of_all = {{"porder", 2.0F}, {"axis", int64_t{-1}}, {"asvector", true}, {"keepdim", false}};
  std::vector<std::string> norms;
  for (ParamGrad* target : targets) {
    std::string values = target->grad;
    if (ops.IsSparse(target->grad)) {
      // Equal rows are one row of the gradient: their length is that of the sum.
      target->grad =
          ops.Append(target->param, "merge_selected_rows", {{"X", {target->grad}}}, target->grad + "@MERGED");
      values =
          ops.Append(target->param, "get_tensor_from_selected_rows", {{"X", {target->grad}}}, target->grad + "@VALUES");
    }
    norms.push_back(ops.Append(target->param, "p_norm", {{"X", {values}}}, values + "@NORM", of_all));
  }
  const std::string& first = targets[0]->param;
  ops.Append(first, "concat", {{"X", norms}}, stem + "NORMS", {{"axis", int64_t{0}}});
  ops.Append(first, "p_norm", {{"X", {stem + "NORMS"}}}, stem + "NORM", of_all);
  ops.Append(first, "fill_constant", {}, stem + "MOST",
             {{"shape", std::vector<int64_t>{1}}, {"dtype", static_cast<int64_t>(VarType::FP32)}, {"value", most}});
  ops.Append(first, "elementwise_max", {{"X", {stem + "MOST"}}, {"Y", {stem + "NORM"}}}, stem + "LARGER",
             {{"axis", int64_t{-1}}});
  ops.Append(first, "elementwise_div", {{"X", {stem + "MOST"}}, {"Y", {stem + "LARGER"}}}, stem + "FACTOR",
             {{"axis", int64_t{-1}}});
  for (ParamGrad* target : targets) {
    target->grad = ops.Append(target->param, "elementwise_mul", {{"X", {target->grad}}, {"Y", {stem + "FACTOR"}}},
                              target->grad + "@CLIP", {{"axis", int64_t{-1}}});
  }
}

/// g + l1 * sign(w) + l2 * w, a dense gradient.
void Penalize(Lowering& lowering, ParamGrad& target, const Regularization& regularization) {
  GradientOps ops(lowering);
  const auto scaled = [&](const std::string& of, const std::string& out, float factor) {
    return ops.Append(target.param, "scale", {{"X", {of}}}, out,
                      {{"scale", factor}, {"bias", 0.0f}, {"bias_after_scale", true}});
  };
  std::vector<std::string> terms = {target.grad};
  if (regularization.l1() > 0) {
    const std::string sign = ops.Append(target.param, "sign", {{"X", {target.param}}}, target.param + "@SIGN");
    terms.push_back(scaled(sign, target.param + "@L1", regularization.l1()));
  }
  if (regularization.l2() > 0) terms.push_back(scaled(target.param, target.param + "@L2", regularization.l2()));
  target.grad = ops.Append(target.param, "sum", {{"X", terms}}, target.grad + "@PENALIZED");
}

}  // namespace

void CheckClip(Lowering& lowering, std::string_view where, const std::string& path, const GradientClip* clip) {
  if (clip == nullptr) return;
  if (clip->kind_case() == GradientClip::KIND_NOT_SET) {
    lowering.Problem(where, path + ": a clip needs " + OneofNames<GradientClip>("kind") + ", as in clip { norm: 5 }");
  } else if (!clip->has_value()) {
    if (clip->has_min_value()) lowering.Problem(where, path + ".min_value: min_value goes with value; leave it out");
  } else if (clip->has_min_value()) {
    if (clip->min_value() <= clip->value()) return;
    lowering.Problem(where, path + ".min_value: min_value must not be above value, " + ShortestNumber(clip->value()) +
                                "; " + ShortestNumber(clip->min_value()));
  } else if (!(clip->value() > 0) || std::isinf(clip->value())) {
    lowering.Problem(where, path + ".value: value must be above 0, not " + ShortestNumber(clip->value()));
  }
}

void CheckHasNoGlobalNorm(Lowering& lowering, std::string_view where, const std::string& path,
                          const GradientClip& clip) {
  if (!clip.has_global_norm()) return;
  lowering.Problem(where, path + ".global_norm: global_norm is of all gradients; it stands in the model's optimizer");
}

void CheckTableGradients(Lowering& lowering, const TableDesc& table) {
  const std::string where = "table \"" + table.name() + "\"";
  CheckHasNoGlobalNorm(lowering, where, "optimizer.clip", table.optimizer().clip());
  const ParameterRule* rule = lowering.RuleOf(table.name());
  if (!table.has_vocabulary() && rule != nullptr && IsPenalty(rule->regularization())) {
    lowering.Problem(where,
                     "a penalty of the parameter's own is not for a table that grows; give the table an optimizer with "
                     "regularization");
  }
}

void ClipAndPenalize(Lowering& lowering, std::vector<ParamGrad>* gradients) {
  std::vector<ParamGrad*> together;
  float most = 0;
  for (ParamGrad& target : *gradients) {
    const GradientClip* clip = ClipOf(lowering, target.param);
    if (clip == nullptr) continue;
    if (clip->has_global_norm()) {
      together.push_back(&target);
      most = clip->global_norm();
    } else {
      ClipEach(lowering, target, *clip);
    }
  }
  if (!together.empty()) ClipTogether(lowering, together, most);
  for (ParamGrad& target : *gradients) {
    const TableDesc* table = FindTable(lowering.model(), target.param);
    if (table != nullptr && !table->has_vocabulary()) continue;  // the table itself penalizes the rows that it updates
    const Regularization& penalty = PenaltyOf(lowering, target.param);
    if (IsPenalty(penalty)) Penalize(lowering, target, penalty);
  }
}

}  // namespace millrace
