#include <google/protobuf/text_format.h>

#include <algorithm>

#include "core/edit_distance.h"
#include "model/lowering.h"
#include "program/learning_rate.h"
#include "program/oneof_names.h"

namespace millrace {
namespace {

float BaseRate(const OptimizerDesc& optimizer) {
  switch (optimizer.rule_case()) {
    case OptimizerDesc::kSgd: return optimizer.sgd().lr();
    case OptimizerDesc::kAdagrad: return optimizer.adagrad().lr();
    case OptimizerDesc::kAdam: return optimizer.adam().lr();
    case OptimizerDesc::kFtrl: return optimizer.ftrl().alpha();
    case OptimizerDesc::kMomentum: return optimizer.momentum().lr();
    case OptimizerDesc::kRmsprop: return optimizer.rmsprop().lr();
    case OptimizerDesc::kDecayedAdagrad: return optimizer.decayed_adagrad().lr();
    case OptimizerDesc::kLarsMomentum: return optimizer.lars_momentum().lr();
    case OptimizerDesc::kAdadelta: return optimizer.adadelta().lr();
    case OptimizerDesc::kAdamax: return optimizer.adamax().lr();
    case OptimizerDesc::kLamb: return optimizer.lamb().lr();
    case OptimizerDesc::RULE_NOT_SET: break;
  }
  return 0;
}

/// One value of an optimizer's configuration and the range that it must be in.
struct Setting {
  const char* field;
  double value;
  bool may_be_zero;
  double below;  ///< 0: no upper bound
};

std::vector<Setting> Settings(const OptimizerDesc& optimizer) {
  switch (optimizer.rule_case()) {
    case OptimizerDesc::kSgd: return {{"sgd: lr", optimizer.sgd().lr(), false, 0}};
    case OptimizerDesc::kAdagrad: {
      const AdagradDesc& a = optimizer.adagrad();
      return {{"adagrad: lr", a.lr(), false, 0},
              {"adagrad: epsilon", a.epsilon(), true, 0},
              {"adagrad: initial_accumulator", a.initial_accumulator(), true, 0}};
    }
    case OptimizerDesc::kAdam: {
      const AdamDesc& a = optimizer.adam();
      return {{"adam: lr", a.lr(), false, 0},
              {"adam: beta1", a.beta1(), true, 1},
              {"adam: beta2", a.beta2(), true, 1},
              {"adam: epsilon", a.epsilon(), true, 0}};
    }
    case OptimizerDesc::kFtrl: {
      const FtrlDesc& f = optimizer.ftrl();
      return {{"ftrl: alpha", f.alpha(), false, 0},
              {"ftrl: beta", f.beta(), true, 0},
              {"ftrl: l1", f.l1(), true, 0},
              {"ftrl: l2", f.l2(), true, 0}};
    }
    case OptimizerDesc::kMomentum: {
      const MomentumDesc& m = optimizer.momentum();
      return {{"momentum: lr", m.lr(), false, 0}, {"momentum: mu", m.mu(), true, 1}};
    }
    case OptimizerDesc::kRmsprop: {
      const RmsPropDesc& r = optimizer.rmsprop();
      return {{"rmsprop: lr", r.lr(), false, 0},
              {"rmsprop: decay", r.decay(), true, 1},
              {"rmsprop: epsilon", r.epsilon(), true, 0},
              {"rmsprop: momentum", r.momentum(), true, 1}};
    }
    case OptimizerDesc::kDecayedAdagrad: {
      const DecayedAdagradDesc& d = optimizer.decayed_adagrad();
      return {{"decayed_adagrad: lr", d.lr(), false, 0},
              {"decayed_adagrad: decay", d.decay(), true, 1},
              {"decayed_adagrad: epsilon", d.epsilon(), true, 0}};
    }
    case OptimizerDesc::kLarsMomentum: {
      const LarsMomentumDesc& l = optimizer.lars_momentum();
      return {{"lars_momentum: lr", l.lr(), false, 0},
              {"lars_momentum: mu", l.mu(), true, 1},
              {"lars_momentum: coefficient", l.coefficient(), false, 0},
              {"lars_momentum: weight_decay", l.weight_decay(), true, 0}};
    }
    case OptimizerDesc::kAdadelta: {
      const AdadeltaDesc& a = optimizer.adadelta();
      return {{"adadelta: lr", a.lr(), false, 0},
              {"adadelta: rho", a.rho(), true, 1},
              {"adadelta: epsilon", a.epsilon(), false, 0}};
    }
    case OptimizerDesc::kAdamax: {
      const AdamaxDesc& a = optimizer.adamax();
      return {{"adamax: lr", a.lr(), false, 0},
              {"adamax: beta1", a.beta1(), true, 1},
              {"adamax: beta2", a.beta2(), true, 1},
              {"adamax: epsilon", a.epsilon(), true, 0}};
    }
    case OptimizerDesc::kLamb: {
      const LambDesc& l = optimizer.lamb();
      return {{"lamb: lr", l.lr(), false, 0},
              {"lamb: weight_decay", l.weight_decay(), true, 0},
              {"lamb: beta1", l.beta1(), true, 1},
              {"lamb: beta2", l.beta2(), true, 1},
              {"lamb: epsilon", l.epsilon(), true, 0}};
    }
    case OptimizerDesc::RULE_NOT_SET: break;
  }
  return {};
}

/// Rules whose step changes rows that a batch does not touch.
bool MovesEveryRow(const OptimizerDesc& optimizer) {
  return optimizer.has_momentum() || optimizer.has_rmsprop() || optimizer.has_decayed_adagrad() ||
         optimizer.has_lars_momentum() || optimizer.has_adadelta() || optimizer.has_adamax() || optimizer.has_lamb();
}

std::string RuleName(const OptimizerDesc& optimizer) {
  return optimizer.GetDescriptor()->FindFieldByNumber(optimizer.rule_case())->name();
}

void CheckOptimizer(Lowering& lowering, const std::string& where, const OptimizerDesc& optimizer) {
  for (const Setting& setting : Settings(optimizer)) {
    const bool fits = (setting.may_be_zero ? setting.value >= 0 : setting.value > 0) &&
                      (setting.below == 0 || setting.value < setting.below);
    if (fits) continue;
    const std::string range = setting.below > 0     ? "must be in [0, 1)"
                              : setting.may_be_zero ? "must not be negative"
                                                    : "must be positive";
    lowering.Problem(where, std::string(setting.field) + ": " + range + "; " + std::to_string(setting.value));
  }
  if (!(optimizer.ftrl().lr_power() <= 0)) {
    lowering.Problem(where, "ftrl: lr_power: must not be above 0; " + std::to_string(optimizer.ftrl().lr_power()));
  }
  CheckGradientSettings(lowering, where, optimizer.regularization(),
                        optimizer.has_clip() ? &optimizer.clip() : nullptr);
  if (!optimizer.has_schedule()) return;
  const Status status = ValidateSchedule(optimizer.schedule());
  if (status.ok()) return;
  std::string_view text = status.message();
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lowering.Problem(where + ": schedule", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Declares the variable that holds a rate: a constant that the startup program makes, or one that main computes.
void AddRate(Lowering& lowering, const std::string& where, const std::string& name, const OptimizerDesc& optimizer) {
  if (lowering.main().Has(name)) return;
  if (!optimizer.has_schedule()) {
    lowering.AddState(where, name, {1}, BaseRate(optimizer));
    return;
  }
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(optimizer.schedule(), &text);
  while (text.ends_with(' ')) text.pop_back();
  lowering.Append(
      where,
      MakeOp("learning_rate_schedule", {}, {{"Out", {name}}}, {{"base", BaseRate(optimizer)}, {"schedule", text}}),
      OpRole::kOptimize);
}

/// Binds PARAMETER and its ...Out to a new accumulator of the parameter.
void AddAccumulator(Lowering& lowering, OpDesc& op, const std::string& param, std::string_view parameter,
                    const std::string& suffix, const Dims& dims, float start) {
  const std::string name = lowering.StateName(param + "_" + suffix, param + "_" + suffix + "_0");
  lowering.AddState("optimizer", name, dims, start);
  SetInput(op, parameter, {name});
  std::string out(parameter);
  // Paddle's ftrl names these two without "Accumulator" at the end of the output.
  if (out == "SquaredAccumulator") out = "SquaredAccum";
  if (out == "LinearAccumulator") out = "LinearAccum";
  SetOutput(op, out + "Out", {name});
}

OpDesc UpdateOp(Lowering& lowering, const ParamGrad& target, const OptimizerDesc& optimizer, const std::string& rate) {
  const Dims dims = lowering.main().vars().find(target.param)->second.dims;
  OpDesc op = MakeOp("", {{"Param", {target.param}}, {"Grad", {target.grad}}, {"LearningRate", {rate}}},
                     {{"ParamOut", {target.param}}});
  const auto accumulate = [&](std::string_view parameter, const std::string& suffix, const Dims& shape, float start) {
    AddAccumulator(lowering, op, target.param, parameter, suffix, shape, start);
  };
  switch (optimizer.rule_case()) {
    case OptimizerDesc::kSgd: op.set_type("sgd"); break;
    case OptimizerDesc::kAdagrad:
      op.set_type("adagrad");
      accumulate("Moment", "moment", dims, optimizer.adagrad().initial_accumulator());
      SetAttr(op, "epsilon", optimizer.adagrad().epsilon());
      break;
    case OptimizerDesc::kAdam: {
      const AdamDesc& adam = optimizer.adam();
      op.set_type("adam");
      accumulate("Moment1", "moment1", dims, 0);
      accumulate("Moment2", "moment2", dims, 0);
      accumulate("Beta1Pow", "beta1_pow_acc", {1}, adam.beta1());
      accumulate("Beta2Pow", "beta2_pow_acc", {1}, adam.beta2());
      SetAttr(op, "beta1", adam.beta1());
      SetAttr(op, "beta2", adam.beta2());
      SetAttr(op, "epsilon", adam.epsilon());
      SetAttr(op, "lazy_mode", adam.lazy_mode());
      SetAttr(op, "exact_sparse_powers", true);
      break;
    }
    case OptimizerDesc::kFtrl:
      op.set_type("ftrl");
      accumulate("SquaredAccumulator", "squared", dims, 0);
      accumulate("LinearAccumulator", "linear", dims, 0);
      SetAttr(op, "l1", optimizer.ftrl().l1());
      SetAttr(op, "l2", optimizer.ftrl().l2());
      SetAttr(op, "beta", optimizer.ftrl().beta());
      SetAttr(op, "lr_power", optimizer.ftrl().lr_power());
      break;
    case OptimizerDesc::kMomentum:
      op.set_type("momentum");
      accumulate("Velocity", "velocity", dims, 0);
      SetAttr(op, "mu", optimizer.momentum().mu());
      SetAttr(op, "use_nesterov", optimizer.momentum().use_nesterov());
      break;
    case OptimizerDesc::kRmsprop:
      op.set_type("rmsprop");
      accumulate("Moment", "momentum", dims, 0);
      accumulate("MeanSquare", "mean_square", dims, 0);
      accumulate("MeanGrad", "mean_grad", dims, 0);
      SetAttr(op, "decay", optimizer.rmsprop().decay());
      SetAttr(op, "epsilon", optimizer.rmsprop().epsilon());
      SetAttr(op, "momentum", optimizer.rmsprop().momentum());
      SetAttr(op, "centered", optimizer.rmsprop().centered());
      break;
    case OptimizerDesc::kDecayedAdagrad:
      op.set_type("decayed_adagrad");
      accumulate("Moment", "moment", dims, 0);
      SetAttr(op, "decay", optimizer.decayed_adagrad().decay());
      SetAttr(op, "epsilon", optimizer.decayed_adagrad().epsilon());
      break;
    case OptimizerDesc::kLarsMomentum:
      op.set_type("lars_momentum");
      accumulate("Velocity", "velocity", dims, 0);
      SetAttr(op, "mu", optimizer.lars_momentum().mu());
      SetAttr(op, "lars_coeff", optimizer.lars_momentum().coefficient());
      SetAttr(op, "lars_weight_decay", std::vector<float>{optimizer.lars_momentum().weight_decay()});
      break;
    case OptimizerDesc::kAdadelta:
      op.set_type("adadelta");
      accumulate("AvgSquaredGrad", "avg_squared_grad", dims, 0);
      accumulate("AvgSquaredUpdate", "avg_squared_update", dims, 0);
      SetAttr(op, "rho", optimizer.adadelta().rho());
      SetAttr(op, "epsilon", optimizer.adadelta().epsilon());
      break;
    case OptimizerDesc::kAdamax: {
      const AdamaxDesc& adamax = optimizer.adamax();
      op.set_type("adamax");
      accumulate("Moment", "moment", dims, 0);
      accumulate("InfNorm", "inf_norm", dims, 0);
      accumulate("Beta1Pow", "beta1_pow_acc", {1}, adamax.beta1());
      SetAttr(op, "beta1", adamax.beta1());
      SetAttr(op, "beta2", adamax.beta2());
      SetAttr(op, "epsilon", adamax.epsilon());
      break;
    }
    case OptimizerDesc::kLamb: {
      const LambDesc& lamb = optimizer.lamb();
      const bool decays = std::find(lamb.without_decay().begin(), lamb.without_decay().end(), target.param) ==
                          lamb.without_decay().end();
      op.set_type("lamb");
      accumulate("Moment1", "moment1", dims, 0);
      accumulate("Moment2", "moment2", dims, 0);
      accumulate("Beta1Pow", "beta1_pow_acc", {1}, lamb.beta1());
      accumulate("Beta2Pow", "beta2_pow_acc", {1}, lamb.beta2());
      SetAttr(op, "weight_decay", decays ? lamb.weight_decay() : 0);
      SetAttr(op, "beta1", lamb.beta1());
      SetAttr(op, "beta2", lamb.beta2());
      SetAttr(op, "epsilon", lamb.epsilon());
      break;
    }
    case OptimizerDesc::RULE_NOT_SET: break;
  }
  return op;
}

OpDesc TablePush(const ParamGrad& target, const std::string& rate) {
  return MakeOp("sparse_table_push", {{"Table", {target.param}}, {"Grad", {target.grad}}, {"LearningRate", {rate}}},
                {{"TableOut", {target.param}}});
}

/// The variable with the rate of a parameter: `shared`, that of the model's optimizer, its table's own, or a part of
/// one.
std::string RateOf(Lowering& lowering, const std::string& param, const OptimizerDesc& optimizer,
                   const std::string& shared) {
  const bool own = &optimizer != &lowering.model().optimizer();
  const std::string usual = "learning_rate_" + param;
  const std::string rate = own ? lowering.StateName(usual, usual) : shared;
  AddRate(lowering, "optimizer", rate, optimizer);
  const ParameterRule* rule = lowering.RuleOf(param);
  if (rule == nullptr || rule->rate() == 1) return rate;
  const std::string scaled = rate + "_of_" + param;
  lowering.Append("parameter \"" + param + "\"",
                  MakeOp("scale", {{"X", {rate}}}, {{"Out", {scaled}}},
                         {{"scale", rule->rate()}, {"bias", 0.0f}, {"bias_after_scale", true}}),
                  OpRole::kOptimize);
  return scaled;
}

}  // namespace

const TableDesc* FindTable(const ModelDesc& model, const std::string& name) {
  for (const TableDesc& table : model.table()) {
    if (table.name() == name) return &table;
  }
  return nullptr;
}

const OptimizerDesc& OptimizerOf(const ModelDesc& model, const TableDesc* table) {
  return table != nullptr && table->has_optimizer() ? table->optimizer() : model.optimizer();
}

void CheckOptimizers(Lowering& lowering) {
  const ModelDesc& model = lowering.model();
  lowering.Enter("model.optimizer");
  const bool has_default = model.optimizer().rule_case() != OptimizerDesc::RULE_NOT_SET;
  if (!has_default) {
    lowering.Problem("optimizer", "missing; add for example optimizer { adagrad { lr: 0.01 } } to the model");
  }
  CheckOptimizer(lowering, "optimizer", model.optimizer());
  for (int i = 0; i < model.table_size(); ++i) {
    const TableDesc& table = model.table(i);
    lowering.Enter("model.table[" + std::to_string(i) + "]");
    CheckOptimizer(lowering, "table \"" + table.name() + "\": optimizer", table.optimizer());
    if (table.has_optimizer() && table.optimizer().rule_case() == OptimizerDesc::RULE_NOT_SET) {
      lowering.Problem("table \"" + table.name() + "\"",
                       "optimizer: names no rule; add " + OneofNames<OptimizerDesc>("rule"));
    }
    const OptimizerDesc& rule = OptimizerOf(model, &table);
    if (!table.has_vocabulary() && MovesEveryRow(rule)) {
      lowering.Problem("table \"" + table.name() + "\"",
                       "optimizer: " + RuleName(rule) +
                           " moves every row at each step, which a table that grows cannot do; give the table a rule "
                           "of its own, or a vocabulary");
    }
    CheckTableGradients(lowering, table);
  }
}

namespace {

/// A rule leaves the decay out for parameters that it moves, or that nothing moves; any other name is a mistake.
void CheckWithoutDecay(Lowering& lowering, const std::vector<ParamGrad>& gradients, const OptimizerDesc& rule,
                       const std::string& where, const std::string& field) {
  std::vector<std::string_view> moved;
  for (const ParamGrad& target : gradients) {
    if (&OptimizerOf(lowering.model(), FindTable(lowering.model(), target.param)) == &rule) {
      moved.push_back(target.param);
    }
  }
  for (const std::string& name : rule.lamb().without_decay()) {
    const auto var = lowering.main().vars().find(name);
    const bool is_moved =
        std::any_of(gradients.begin(), gradients.end(), [&name](const ParamGrad& g) { return g.param == name; });
    const bool is_idle = var != lowering.main().vars().end() && var->second.persistable && !is_moved;
    if (is_idle || std::find(moved.begin(), moved.end(), name) != moved.end()) continue;
    lowering.Problem(where,
                     field + "lamb: without_decay: moves no parameter \"" + name + "\"" + DidYouMean(name, moved));
  }
}

}  // namespace

void AppendUpdates(Lowering& lowering, std::vector<ParamGrad> gradients) {
  const ModelDesc& model = lowering.model();
  lowering.Enter("model.optimizer");
  // Paddle updates in the order of the parameters' names.
  std::sort(gradients.begin(), gradients.end(),
            [](const ParamGrad& a, const ParamGrad& b) { return a.param < b.param; });
  CheckWithoutDecay(lowering, gradients, model.optimizer(), "optimizer", "");
  for (int i = 0; i < model.table_size(); ++i) {
    const TableDesc& table = model.table(i);
    lowering.Enter("model.table[" + std::to_string(i) + "]");
    CheckWithoutDecay(lowering, gradients, table.optimizer(), "table \"" + table.name() + "\"", "optimizer: ");
  }
  lowering.Enter("model.optimizer");
  ClipAndPenalize(lowering, &gradients);
  const std::string shared_rate = lowering.StateName("learning_rate", "learning_rate_0");
  for (const ParamGrad& target : gradients) {
    const TableDesc* table = FindTable(model, target.param);
    const OptimizerDesc& optimizer = OptimizerOf(model, table);
    const std::string rate = RateOf(lowering, target.param, optimizer, shared_rate);
    const bool is_hash = table != nullptr && !table->has_vocabulary();
    const std::string where = "parameter \"" + target.param + "\"";
    lowering.Append(where, is_hash ? TablePush(target, rate) : UpdateOp(lowering, target, optimizer, rate),
                    OpRole::kOptimize);
  }
}

}  // namespace millrace
