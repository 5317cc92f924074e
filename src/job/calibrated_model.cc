#include "job/calibrated_model.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/edit_distance.h"
#include "model/lowering.h"
#include "program/block_builder.h"
#include "program/var_meta.h"

namespace millrace {
namespace {

constexpr std::string_view kSums = "CALIBRATION_SUMS";

/// Why a loss's prediction cannot be calibrated; empty: it can.
std::string WhyNot(const LossDesc& loss, const CompiledTask& task, const CompiledModel& model) {
  if (!loss.has_class_name() && loss.kind() == LossDesc::SQUARED_ERROR) {
    return "the prediction of SQUARED_ERROR is a value, and calibrations are of probabilities";
  }
  const VarDesc* const var = FindVar(model.test, task.prediction);
  const Result<VarMeta> meta = var == nullptr ? NotFound("no variable") : ToMeta(*var);
  if (!meta.ok() || meta->dims.rank() != 2 || meta->dims[1] <= 2) return "";
  return "\"" + task.prediction + "\" has probabilities of " + std::to_string(meta->dims[1]) +
         " classes, and calibrations are of two";
}

std::string Free(const ProgramDesc& program, std::string name) {
  while (FindVar(program, name) != nullptr) name += "_";
  return name;
}

}  // namespace

std::vector<CalibrationPlan> PlanCalibrations(const TrainerDesc& desc, const std::vector<EvalSet>& sets,
                                              const CompiledModel& model, std::vector<ConfigMistake>* mistakes) {
  std::vector<CalibrationPlan> plans;
  if (model.tasks.empty()) return plans;
  const auto& losses = desc.model().loss();
  // The number of the calibration of each loss: those that name it come first.
  std::vector<int> chosen(model.tasks.size(), -1);
  for (const bool by_name : {true, false}) {
    for (int i = 0; i < desc.eval().calibration_size(); ++i) {
      const EvalDesc::Calibration& wanted = desc.eval().calibration(i);
      if (wanted.has_loss() != by_name) continue;
      const std::string path = "eval.calibration[" + std::to_string(i) + "]";
      bool any = false;
      for (size_t t = 0; t < model.tasks.size(); ++t) {
        const CompiledTask& task = model.tasks[t];
        const bool is_meant = by_name ? task.name == wanted.loss() : chosen[t] < 0;
        if (!is_meant) continue;
        any = true;
        if (chosen[t] >= 0) {
          mistakes->push_back({path + ".loss", "eval.calibration[" + std::to_string(chosen[t]) +
                                                   "] is of the same loss; leave one out"});
          continue;
        }
        chosen[t] = i;
        const std::string why = WhyNot(losses[static_cast<int>(t)], task, model);
        const std::string who = task.name.empty() ? "" : "loss \"" + task.name + "\": ";
        const std::string advice = model.tasks.size() == 1 ? "; leave calibration out"
                                   : by_name               ? "; leave it out"
                                                           : "; name the losses that can be: loss: \"...\"";
        if (!why.empty()) mistakes->push_back({by_name ? path + ".loss" : path, who + why + advice});
        const auto set = std::find_if(sets.begin(), sets.end(),
                                      [&](const EvalSet& one) { return wanted.has_set() && one.name == wanted.set(); });
        const auto number = set == sets.end() ? 0 : static_cast<size_t>(set - sets.begin());
        if (why.empty()) plans.push_back({t, wanted.kind() == EvalDesc::Calibration::ISOTONIC, task.name, number});
      }
      if (any) continue;
      std::vector<std::string_view> names;
      for (const CompiledTask& task : model.tasks) names.push_back(task.name);
      if (by_name) {
        mistakes->push_back({path + ".loss", "no loss \"" + wanted.loss() + "\"" + DidYouMean(wanted.loss(), names)});
      } else {
        mistakes->push_back({path, "other calibrations are of all losses; leave this one out"});
      }
    }
  }
  std::sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
  return plans;
}

Result<std::vector<MetricSpec>> AddCalibrationSums(const std::vector<CalibrationPlan>& plans,
                                                   const CompiledModel& model, const OpRegistry& registry,
                                                   ProgramDesc* forward) {
  std::vector<MetricSpec> specs;
  MR_ASSIGN(BlockBuilder builder, BlockBuilder::Create(*forward->mutable_blocks(0), registry));
  for (const CalibrationPlan& plan : plans) {
    const CompiledTask& task = model.tasks[plan.task];
    MetricSpec& spec = specs.emplace_back();
    spec.kind = kSums;
    spec.prediction = task.prediction;
    spec.label = task.label;
    Bound inputs;
    if (!task.sample_weight.empty()) inputs.push_back({"Weight", {task.sample_weight}});
    if (!task.mask.empty()) inputs.push_back({"Mask", {task.mask}});
    if (inputs.empty()) continue;
    spec.weights = Free(*forward, task.prediction + ".weights_of_calibration");
    MR_TRY(builder.Append(MakeOp("example_weights", inputs, {{"Out", {spec.weights}}}), OpRole::kForward));
  }
  return specs;
}

Result<MetricRegistry> WithCalibrationSums(const MetricRegistry& metrics) {
  MetricRegistry all = metrics;
  MR_TRY(all.Add(std::string(kSums), "what calibrations are taken from",
                 {MetricLabels::kShares, MetricBetter::kLower, MakeCalibrationSums, true, OfClasses::kLast,
                  [](std::span<const ExampleRow>) { return std::numeric_limits<double>::quiet_NaN(); }}));
  return all;
}

TaskCalibration Calibrate(const CalibrationPlan& plan, std::span<const double> sums,
                          std::optional<std::span<const ExampleRow>> rows, int64_t examples) {
  TaskCalibration made{plan.task, plan.is_isotonic, plan.loss, examples, {}, {}};
  Result<CalibrationFit> fit = sums.empty() ? BadData("some have a prediction or a label that is NaN or infinite")
                                            : FitCalibration(sums, rows, plan.is_isotonic);
  if (fit.ok()) {
    made.fit = *std::move(fit);
  } else {
    made.failure = fit.status().message();
  }
  return made;
}

Result<std::shared_ptr<const CompiledModel>> CalibratedModel(const CompiledModel& model,
                                                             const std::vector<TaskCalibration>& calibrations,
                                                             const OpRegistry& registry) {
  auto made = std::make_shared<CompiledModel>();
  made->test = model.test;
  made->tasks = model.tasks;
  made->label = model.label;
  MR_ASSIGN(BlockBuilder builder, BlockBuilder::Create(*made->test.mutable_blocks(0), registry));
  for (const TaskCalibration& calibration : calibrations) {
    if (!calibration.failure.empty()) continue;
    CompiledTask& task = made->tasks[calibration.task];
    std::string out = task.prediction + ".calibrated";
    // Two losses may have one prediction.
    if (FindVar(made->test, out) != nullptr && !task.name.empty()) out += "." + task.name;
    out = Free(made->test, out);
    const CalibrationFit& fit = calibration.fit;
    MR_TRY(builder.Append(MakeOp("calibration", {{"X", {task.prediction}}}, {{"Out", {out}}},
                                 {{"slope", fit.slope},
                                  {"intercept", fit.intercept},
                                  {"center", fit.center},
                                  {"points", fit.points},
                                  {"values", fit.values}}),
                          OpRole::kForward));
    task.prediction = out;
    // What it now says is how often labels are 1, which weights of classes do not change.
    task.class_weight.clear();
  }
  made->prediction = made->tasks[0].prediction;
  return std::shared_ptr<const CompiledModel>(std::move(made));
}

}  // namespace millrace
