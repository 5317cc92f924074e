#include "model/model_compiler.h"

#include <glog/logging.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/edit_distance.h"
#include "model/lowering.h"
#include "program/backward.h"
#include "program/model_defaults.h"

namespace millrace {
namespace {

std::string WhereOf(const MetricDesc& metric) {
  return metric.has_kind() || metric.has_class_name() ? "metric " + KindOf(metric) : "metric";
}

/// Whether what the losses would have predicted is not known, and `name` may be one of these variables.
bool MayBePrediction(const Lowering& lowering, const LoweredLoss& loss, const std::string& name) {
  const auto& losses = lowering.model().loss();
  const auto is_custom = [](const LossDesc& one) { return one.has_class_name(); };
  return loss.loss.empty() && (name.starts_with("prediction") || std::any_of(losses.begin(), losses.end(), is_custom));
}

/// Takes the variable that a metric names, with the probability that a loss makes of it; "" with the mistake noted.
void TakeMetricInput(Lowering& lowering, const std::string& where, const LoweredLoss& loss, const std::string& name,
                     MetricSpec* spec) {
  spec->prediction = name;
  if (MayBePrediction(lowering, loss, name)) return;
  for (const LoweredTask& task : loss.tasks) {
    const std::vector<std::string>& known = task.predictions;
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
  }
  spec->prediction = lowering.Input(where, "in", name).value_or("");
  if (spec->prediction.empty()) return;
  for (const LoweredTask& task : loss.tasks) {
    if (task.logit != spec->prediction) continue;
    spec->probability = task.predictions[0];
    return;
  }
  if (lowering.main().vars().find(spec->prediction)->second.dtype == DType::kFloat32) return;
  spec->prediction.clear();
  lowering.Problem(where, "in: \"" + name + "\" does not hold floats");
}

/// The loss that a metric goes with: the one it names, its only one, or the one whose prediction it reads; null: none.
const LoweredTask* TaskOf(const LoweredLoss& loss, const MetricDesc& metric, int number) {
  if (number >= 0) {
    return static_cast<size_t>(number) < loss.tasks.size() ? &loss.tasks[static_cast<size_t>(number)] : nullptr;
  }
  for (const LoweredTask& task : loss.tasks) {
    const auto& known = task.predictions;
    if (std::find(known.begin(), known.end(), metric.in()) != known.end()) return &task;
  }
  return nullptr;
}

/// Fills in by what a metric's rows are weighed: the loss's weights, or, where the metric says otherwise, its own.
void ResolveWeights(Lowering& lowering, const std::string& where, const MetricDesc& metric, const LoweredTask* task,
                    MetricSpec* spec, int number) {
  ExampleWeights weights = task != nullptr ? task->by : ExampleWeights();
  const bool has_own_label = task == nullptr || spec->label != task->label;
  // Where the prediction makes good what was left out, the loss has no weights for it, and a metric of the training
  // has.
  const ExampleWeights thinned = ThinnedOf(lowering.model());
  const bool has_own_thinned = !thinned.thinned.empty() && weights.thinned.empty();
  if (!metric.has_mask() && metric.weighted() && !has_own_label && !has_own_thinned) {
    spec->weights = task->weights;
    return;
  }
  if (has_own_thinned) {
    weights.thinned = thinned.thinned;
    weights.thinned_value = thinned.thinned_value;
    weights.rate = thinned.rate;
  }
  if (metric.has_mask()) weights.mask = metric.mask();
  if (!metric.weighted()) weights.sample_weight.clear();
  if (!metric.weighted() || has_own_label) weights.class_weight.clear();
  if (!weights.IsAny()) return;
  weights.label = weights.class_weight.empty() ? "" : spec->label;
  spec->weights = "loss.weights_of_metric_" + std::to_string(number);
  if (!AppendWeightsOfMetric(lowering, where, weights, spec->weights)) spec->weights.clear();
}

/// The metric of one loss, or nothing with the mistake noted. `is_sound`: nothing was noted of it yet.
std::optional<MetricSpec> ResolveMetric(Lowering& lowering, const LoweredLoss& loss, const MetricOfLoss& of, int number,
                                        bool is_sound) {
  const MetricDesc& metric = lowering.model().metric(of.metric);
  MetricSpec spec;
  spec.kind = KindOf(metric);
  spec.name = of.name;
  spec.metric = of.metric;
  const std::string where = WhereOf(metric);
  const LoweredTask* const task = TaskOf(loss, metric, of.loss);
  if (task != nullptr) spec.prediction = task->predictions[0];
  if (metric.has_in()) TakeMetricInput(lowering, where, loss, metric.in(), &spec);
  spec.label = metric.has_label() ? metric.label() : task != nullptr ? task->label : "";
  if (spec.label.empty() && lowering.model().loss_size() > 1 && !loss.loss.empty()) {
    lowering.Missing(where, "loss: \"" + metric.in() +
                                "\" is the prediction of no loss, so name the loss whose label it has, or a label");
    return std::nullopt;
  }
  spec.group = metric.group();
  spec.max_rows = metric.max_rows();
  if (is_sound && !loss.loss.empty()) ResolveWeights(lowering, where, metric, task, &spec, number);
  return spec;
}

/// Notes what is wrong with a metric whatever the model computes; false if it is not known which one it is.
bool CheckMetric(Lowering& lowering, const std::string& where, const MetricDesc& metric) {
  (void)lowering.CheckRanges(where, "", metric);
  if (metric.has_name() && !NameMistake(metric.name()).empty()) {
    lowering.Problem(where, "name: " + NameMistake(metric.name()));
  }
  if (metric.has_label()) (void)lowering.OneValueSlot(where, "label", metric.label());
  if (metric.has_mask()) (void)lowering.OneValueSlot(where, "mask", metric.mask());
  const SlotSpec* group = metric.has_group() ? lowering.Slot(where, "group", metric.group()) : nullptr;
  if (group != nullptr && group->type != SlotType::kUint64) {
    lowering.Problem(
        where, "group: slot \"" + metric.group() + "\" holds floats; groups are ids (" + lowering.IdAdvice() + ")");
  }
  if (metric.has_kind() && metric.has_class_name()) {
    lowering.Problem(where, "class_name: the metric has a kind, too; leave one of them out");
    return false;
  }
  if (!metric.has_kind() && !metric.has_class_name()) {
    lowering.Missing(where, "kind: a metric needs a kind: metric { kind: AUC }");
    return false;
  }
  const std::string kind = KindOf(metric);
  if (kind == "GAUC") {
    if (metric.group().empty()) {
      lowering.Missing(where, "group: GAUC needs a group, the slot whose first id groups examples: group: \"user\"");
    }
    return true;
  }
  if (metric.has_group()) lowering.Problem(where, "group: " + kind + " has no groups; GAUC has");
  if (metric.has_max_rows()) lowering.Problem(where, "max_rows: " + kind + " keeps no rows; GAUC does");
  return true;
}

std::vector<MetricSpec> ResolveMetrics(Lowering& lowering, const LoweredLoss& loss) {
  const ModelDesc& model = lowering.model();
  std::vector<MetricSpec> metrics;
  for (int i = 0; i < model.metric_size(); ++i) {
    const MetricDesc& metric = model.metric(i);
    lowering.Enter("model.metric[" + std::to_string(i) + "]", &metric);
    const std::string where = WhereOf(metric);
    const size_t mistakes = lowering.mistakes().size();
    const bool is_known = CheckMetric(lowering, where, metric);
    const auto same = [&metric](const LossDesc& other) { return other.name() == metric.loss(); };
    if (metric.has_loss() && !model.loss().empty() && std::none_of(model.loss().begin(), model.loss().end(), same)) {
      std::vector<std::string> names;
      for (const LossDesc& other : model.loss()) names.push_back(other.name());
      lowering.Problem(where, "loss: " + NoSuchName("loss", metric.loss(), names));
    }
    const bool is_sound = lowering.mistakes().size() == mistakes;
    for (const MetricOfLoss& of : MetricsOf(model)) {
      if (of.metric != i || !is_known) continue;
      std::optional<MetricSpec> spec = ResolveMetric(lowering, loss, of, static_cast<int>(metrics.size()), is_sound);
      if (spec) metrics.push_back(std::move(*spec));
    }
  }
  lowering.Enter("model");
  return metrics;
}

/// Notes what is wrong with metrics of a program that was written elsewhere.
void CheckMetricsOfProgram(Lowering& lowering) {
  for (int i = 0; i < lowering.model().metric_size(); ++i) {
    const MetricDesc& metric = lowering.model().metric(i);
    lowering.Enter("model.metric[" + std::to_string(i) + "]", &metric);
    const std::string where = WhereOf(metric);
    const std::string kind = metric.has_kind() || metric.has_class_name() ? KindOf(metric) : "a metric";
    if (metric.in().empty()) {
      lowering.Missing(where, "in: " + kind + " needs in: the program's variable with the prediction");
    }
    if (metric.label().empty()) lowering.Missing(where, "label: " + kind + " needs label: the slot of the label");
    (void)CheckMetric(lowering, where, metric);
    if (!metric.loss().empty()) lowering.Problem(where, "loss: the losses of a program have no names; leave it out");
    if (!metric.mask().empty()) {
      lowering.Problem(where, "mask: beside a program metrics count every example; leave it out, or write a model");
    }
  }
}

/// The first blocks of two empty programs, as a lowering begins.
Result<Lowering> Begin(const ModelDesc& model, const SlotSchema& schema, const OpRegistry& registry,
                       const ModelParts& parts, ModelForm form, CompiledModel* compiled) {
  MR_ASSIGN(BlockBuilder main, BlockBuilder::Create(*FirstBlock(compiled->main), registry));
  MR_ASSIGN(BlockBuilder startup, BlockBuilder::Create(*FirstBlock(compiled->startup), registry));
  return Lowering(model, schema, parts, form, std::move(main), std::move(startup));
}

/// Lowers the forward part and notes all mistakes but those of updates.
LoweredLoss LowerForward(Lowering& lowering, std::vector<MetricSpec>* metrics) {
  CheckTables(lowering);
  CheckOptimizers(lowering);
  LowerLayers(lowering);
  LoweredLoss loss = LowerLoss(lowering);
  *metrics = ResolveMetrics(lowering, loss);
  return loss;
}

/// Slots that operators of the test program need for the predictions.
std::vector<std::string> FindFeeds(const ProgramDesc& test, const std::vector<CompiledTask>& tasks,
                                   const SlotSchema& schema, const OpRegistry& registry) {
  std::unordered_set<std::string_view> needed;
  for (const CompiledTask& task : tasks) needed.insert(task.prediction);
  const BlockDesc& block = test.blocks(0);
  for (int i = block.ops_size() - 1; i >= 0; --i) {
    bool writes = false;
    for (const OpDesc::Var& output : block.ops(i).outputs()) {
      for (const std::string& name : output.arguments()) writes = writes || needed.contains(name);
    }
    if (!writes) continue;
    // softmax_with_cross_entropy gives the prediction and reads the label; a prediction does not need it.
    const OpInfo* info = registry.Find(block.ops(i).type());
    for (const OpDesc::Var& input : block.ops(i).inputs()) {
      if (info != nullptr && info->IsForGradient(input.parameter())) continue;
      if (input.parameter() != "Label") needed.insert(input.arguments().begin(), input.arguments().end());
    }
  }
  std::vector<std::string> feeds;
  for (const SlotSpec& slot : schema.used()) {
    if (needed.contains(slot.name)) feeds.push_back(slot.name);
  }
  return feeds;
}

}  // namespace

BlockDesc* FirstBlock(ProgramDesc& program) {
  BlockDesc* block = program.add_blocks();
  block->set_idx(0);
  block->set_parent_idx(-1);
  program.mutable_version()->set_version(0);
  return block;
}

std::unique_ptr<google::protobuf::Arena> CompiledModel::NewMemory() {
  google::protobuf::ArenaOptions options;
  options.max_block_size = size_t{1} << 20;
  return std::make_unique<google::protobuf::Arena>(options);
}

ProgramDesc CloneForTest(const ProgramDesc& program) {
  ProgramDesc test = program;
  MakeForTest(&test);
  return test;
}

void MakeForTest(ProgramDesc* program) {
  for (BlockDesc& block : *program->mutable_blocks()) {
    auto* ops = block.mutable_ops();
    ops->erase(std::remove_if(ops->begin(), ops->end(), [](const OpDesc& op) { return !IsAuthored(op); }), ops->end());
    for (OpDesc& op : *ops) {
      if (FindAttr(op, "is_test") != nullptr) SetAttr(op, "is_test", true);
    }
  }
}

Result<CompiledModel> CompileModel(const ModelDesc& model, const SlotSchema& schema, const OpRegistry& registry,
                                   const ModelParts& parts, ModelForm form, std::vector<ConfigMistake>* mistakes,
                                   const std::stop_token& stop) {
  const auto go_on = [&stop] {
    return stop.stop_requested() ? Cancelled("stopped while compiling the model") : Status();
  };
  MR_TRY(go_on());
  CompiledModel compiled;
  MR_ASSIGN(Lowering lowering, Begin(model, schema, registry, parts, form, &compiled));
  const LoweredLoss loss = LowerForward(lowering, &compiled.metrics);
  *mistakes = lowering.mistakes();
  MR_TRY(lowering.ToStatus());
  MR_TRY(go_on());

  compiled.loss = loss.loss;
  for (const LoweredTask& task : loss.tasks) {
    compiled.tasks.push_back(
        {task.name, task.predictions[0], task.label, task.by.sample_weight, task.by.mask, task.by.class_weight});
  }
  compiled.prediction = compiled.tasks[0].prediction;
  compiled.label = compiled.tasks[0].label;
  compiled.tables = lowering.tables();
  if (form == ModelForm::kPaddleForward) {
    compiled.test.Swap(&compiled.main);
  } else {
    compiled.test = compiled.main;
  }
  MakeForTest(&compiled.test);
  MR_TRY(go_on());
  if (form == ModelForm::kPaddleForward) return compiled;
  compiled.feeds = FindFeeds(compiled.test, compiled.tasks, schema, registry);
  MR_TRY(go_on());
  MR_ASSIGN(std::vector<ParamGrad> gradients, AppendBackward(compiled.main, compiled.loss, registry, 0, stop));
  MR_TRY(lowering.Reload());
  MR_TRY(go_on());
  AppendUpdates(lowering, std::move(gradients));
  *mistakes = lowering.mistakes();
  MR_TRY(lowering.ToStatus());
  return compiled;
}

Result<CompiledModel> CompileModel(const ModelDesc& model, const SlotSchema& schema, const OpRegistry& registry) {
  std::vector<ConfigMistake> mistakes;
  return CompileModel(model, schema, registry, ModelParts::Builtin(), ModelForm::kPaddle, &mistakes);
}

ModelJudgement JudgeModel(const ModelDesc& model, const SlotSchema& schema, const OpRegistry& registry,
                          const ModelParts& parts, bool is_of_program) {
  CompiledModel scratch;
  Result<Lowering> lowering = Begin(model, schema, registry, parts, ModelForm::kFused, &scratch);
  CHECK(lowering.ok()) << lowering.status().message();
  if (is_of_program) {
    CheckTables(*lowering);
    CheckOptimizers(*lowering, false);
    CheckMetricsOfProgram(*lowering);
  } else {
    std::vector<MetricSpec> metrics;
    (void)LowerForward(*lowering, &metrics);
  }
  return {lowering->mistakes(), lowering->reads()};
}

}  // namespace millrace
