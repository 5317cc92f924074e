#include "job/job_mistakes.h"

#include <algorithm>
#include <string_view>

#include "core/edit_distance.h"
#include "core/machine_memory.h"
#include "metrics/metric_set.h"
#include "program/var_meta.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

/// The variables of a program by name.
class Variables {
 public:
  explicit Variables(const ProgramDesc& program) {
    for (const BlockDesc& block : program.blocks()) {
      for (const VarDesc& var : block.vars()) {
        names_.push_back(var.name());
        descs_.push_back(&var);
      }
    }
  }

  void AddFirst(const std::vector<std::string>& names) { names_.insert(names_.begin(), names.begin(), names.end()); }
  bool Has(std::string_view name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }
  const VarDesc* Find(std::string_view name) const {
    const auto desc =
        std::find_if(descs_.begin(), descs_.end(), [&](const VarDesc* var) { return var->name() == name; });
    return desc == descs_.end() ? nullptr : *desc;
  }
  const std::vector<std::string_view>& names() const { return names_; }

 private:
  std::vector<std::string_view> names_;
  std::vector<const VarDesc*> descs_;
};

bool IsTable(const VarDesc* var) { return var != nullptr && var->type().type() == VarType::SPARSE_TABLE; }

/// Where a metric of probabilities names a logit, lets it read the probability that the loss makes of it.
void ReadProbabilities(const MetricRegistry& registry, std::vector<MetricSpec>* metrics) {
  for (MetricSpec& spec : *metrics) {
    const MetricInfo* const info = registry.Find(spec.kind);
    if (info == nullptr || info->reads == MetricReads::kAsNamed || spec.probability.empty()) continue;
    spec.prediction = spec.probability;
  }
}

}  // namespace

Result<CompiledModel> CompileModelOf(const TrainerDesc& desc, const SlotSchema& schema, const Environment& environment,
                                     ModelForm form, std::vector<ConfigMistake>* mistakes,
                                     const std::stop_token& stop) {
  Result<CompiledModel> model = CompileModel(desc.model(), schema, environment.ops, environment, form, mistakes, stop);
  if (model.ok()) ReadProbabilities(environment.metrics, &model->metrics);
  return model;
}

std::vector<ConfigMistake> FindUnknownNames(const TrainerDesc& desc, const CompiledModel& model,
                                            const std::vector<std::string>& metrics) {
  std::vector<ConfigMistake> mistakes;
  const Variables variables(model.main);
  const auto check = [&](const auto& names, const std::string& path, const Variables& known, const auto& explain) {
    for (int i = 0; i < names.size(); ++i) {
      std::string why = explain(names[i]);
      if (why.empty()) continue;
      if (!known.Has(names[i])) why += DidYouMean(names[i], known.names());
      mistakes.push_back({path + "[" + std::to_string(i) + "]", std::move(why)});
    }
  };

  Variables fetched = variables;
  std::vector<std::string> windows;
  for (const std::string& metric : metrics) windows.push_back("batch_" + metric);
  fetched.AddFirst(windows);
  fetched.AddFirst(metrics);
  check(desc.fetch_config().fetch_var_names(), "fetch_config.fetch_var_names", fetched, [&](const std::string& name) {
    return fetched.Has(name) ? "" : "there is no metric or variable \"" + name + "\"";
  });

  Variables seen = variables;
  std::vector<std::string> slots;
  for (const Slot& slot : desc.data_desc().multi_slot_desc().slots()) {
    Result<std::vector<std::string>> names = ExpandSlotRange(slot.name());
    if (slot.is_used() && names.ok()) slots.insert(slots.end(), names->begin(), names->end());
  }
  seen.AddFirst(slots);
  const auto has_tensor = [&](const std::string& name) -> std::string {
    if (!seen.Has(name)) return "there is no variable \"" + name + "\"";
    if (!IsTable(seen.Find(name))) return "";
    return "\"" + name + "\" is a table of rows by id, no tensor; a checkpoint or a model holds it";
  };
  check(desc.check_nan_var_names(), "check_nan_var_names", seen, has_tensor);
  check(desc.dump_fields(), "dump_fields", seen, has_tensor);
  check(desc.dump_param(), "dump_param", seen, has_tensor);
  check(desc.hogwild_param().stat_var_names(), "hogwild_param.stat_var_names", variables,
        [&](const std::string& name) -> std::string {
          const VarDesc* var = variables.Find(name);
          if (var != nullptr && var->persistable() && !IsTable(var)) return "";
          return "there is no persistable tensor \"" + name + "\"";
        });
  return mistakes;
}

Status CheckFitsMemory(const ProgramDesc& program) {
  double bytes = 0;
  double most = 0;
  std::string largest;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (!var.persistable() || var.type().type() != VarType::LOD_TENSOR) continue;
    MR_ASSIGN(const VarMeta meta, ToMeta(var));
    auto size = static_cast<double>(SizeOf(meta.dtype));
    for (const int64_t axis : meta.dims.sizes()) size *= static_cast<double>(std::max<int64_t>(axis, 0));
    bytes += size;
    if (size > most) largest = "\"" + var.name() + "\" " + meta.dims.ToString();
    most = std::max(most, size);
  }
  const double memory = PhysicalMemory();
  if (bytes <= memory) return Status::Ok();
  return InvalidConfig("the parameters and what their optimizers keep need " + Gibibytes(bytes) +
                       ", and this machine has " + Gibibytes(memory) + "; the largest is " + largest +
                       ": make it smaller, or leave out the vocabulary of a table, which then grows as ids come");
}

std::vector<std::string> PooledOf(const ModelDesc& model) {
  std::vector<std::string> names;
  for (const LayerDesc& layer : model.layer()) {
    if (layer.has_embedding()) names.push_back(layer.name());
  }
  return names;
}

std::vector<ModelExport> PlanExports(const TrainerDesc& desc, const CompiledModel& model, const OpRegistry& registry,
                                     const std::string& output_dir, std::vector<ConfigMistake>* mistakes) {
  ExportSource source;
  source.program = &model.test;
  source.registry = &registry;
  source.data_desc = &desc.data_desc();
  for (const CompiledTask& task : model.tasks) {
    auto& all = source.predictions;
    if (std::find(all.begin(), all.end(), task.prediction) == all.end()) all.push_back(task.prediction);
  }
  source.pooled = PooledOf(desc.model());
  std::vector<ModelExport> exports;
  for (int i = 0; i < desc.output().export__size(); ++i) {
    const ExportDesc& wanted = desc.output().export_(i);
    const std::string where = "output.export[" + std::to_string(i) + "]";
    const bool has_folder = !wanted.dir().empty();
    if (!has_folder && output_dir.empty()) {
      mistakes->push_back({where, "where to? give the run an --output_dir, or the export a dir"});
      continue;
    }
    const std::string name = wanted.format() == ExportDesc::ONNX ? "onnx" : "paddle";
    Result<ModelExport> plan = ModelExport::Plan(source, wanted, has_folder ? wanted.dir() : output_dir + "/" + name);
    if (!plan.ok()) {
      mistakes->push_back({where, plan.status().message()});
      continue;
    }
    const bool is_taken = std::any_of(exports.begin(), exports.end(),
                                      [&](const ModelExport& other) { return other.folder() == plan->folder(); });
    if (is_taken) {
      mistakes->push_back({where, "an earlier export has the folder \"" + plan->folder() + "\" too; give one a dir"});
      continue;
    }
    exports.push_back(std::move(plan).value());
  }
  return exports;
}

std::vector<ConfigMistake> FindUnfitMetrics(const CompiledModel& model, const MetricRegistry& registry) {
  std::vector<ConfigMistake> mistakes;
  for (const MetricSpec& spec : model.metrics) {
    const MetricInfo* const info = registry.Find(spec.kind);
    if (info == nullptr) continue;
    const std::string path = "model.metric[" + std::to_string(spec.metric) + "]";
    const int64_t classes = ClassesOf(model.main, spec.prediction);
    if (classes > 0 && info->of_classes == OfClasses::kLast) {
      mistakes.push_back({path, spec.kind + " is of one value an example, and \"" + spec.prediction + "\" has " +
                                    std::to_string(classes) +
                                    " classes: leave it out, or measure ACCURACY or LOGLOSS, which are of all"});
    }
    if (spec.weights.empty() || info->is_weighted) continue;
    mistakes.push_back(
        {path, spec.kind +
                   " counts every example once, and the loss weighs them: say weighted: false, or have the plugin "
                   "read MetricRows::weights and set MetricInfo::is_weighted"});
  }
  return mistakes;
}

std::vector<ConfigMistake> FindDeeperMistakes(const TrainerDesc& desc, const Environment& environment) {
  std::vector<ConfigMistake> mistakes;
  const Result<SlotSchema> schema = SlotSchema::Create(desc.data_desc());
  if (!desc.has_model() || desc.has_program() || !schema.ok()) return mistakes;
  const Result<CompiledModel> model = CompileModelOf(desc, *schema, environment, ModelForm::kPaddle, &mistakes);
  if (!model.ok()) return mistakes;
  mistakes = FindUnfitMetrics(*model, environment.metrics);
  const Result<std::unique_ptr<const MetricSet>> metrics =
      MetricSet::Create(model->metrics, *schema, environment.metrics, model->loss);
  if (!metrics.ok()) return mistakes;
  mistakes = FindUnknownNames(desc, *model, (*metrics)->names());
  // The folder is known to who runs the job; any other shows the same mistakes.
  const std::string folder = desc.output().dir().empty() ? "." : desc.output().dir();
  if (!desc.infer()) (void)PlanExports(desc, *model, environment.ops, folder, &mistakes);
  return mistakes;
}

}  // namespace millrace
