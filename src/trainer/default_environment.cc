#include "trainer/default_environment.h"

#include <algorithm>
#include <filesystem>

#include "datafeed/builtin_formats.h"
#include "job/job_mistakes.h"
#include "kernels/simd_dispatch.h"
#include "ops/builtin_ops.h"
#include "plugin/plugin_loader.h"
#include "trainer/builtin_trainers.h"

namespace millrace {
namespace {

/// A file by the one name that it has.
std::string FileOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::weakly_canonical(path, error);
  return error ? path : file.string();
}

/// Loads what a job names into its environment.
class EnvironmentPlugins : public PluginHost {
 public:
  EnvironmentPlugins(Environment& environment, bool needs_model)
      : environment_(environment), needs_model_(needs_model), base_(environment.plugins) {}

  Status Load(const std::string& path) override {
    // A job that is run by itself as well names what this process has loaded for all jobs.
    const auto of_base = std::find(base_.begin(), base_.end(), FileOf(path));
    if (of_base == base_.end()) return AddPlugin(path, &environment_);
    base_.erase(of_base);
    return Status::Ok();
  }
  KnownNames names() const override {
    KnownNames names = NamesOf(environment_);
    if (needs_model_) return names;
    KnownNames of_data;
    of_data.datasets = std::move(names.datasets);
    of_data.data_feeds = std::move(names.data_feeds);
    of_data.formats = std::move(names.formats);
    of_data.metrics = std::move(names.metrics);
    of_data.plugin_advice = std::move(names.plugin_advice);
    return of_data;
  }

 private:
  Environment& environment_;
  const bool needs_model_;
  std::vector<std::string> base_;  ///< plugins that were there before, and are not named by the job
};

}  // namespace

Result<Environment> MakeDefaultEnvironment() {
  MR_TRY(CheckSimdCap());
  Environment environment;
  static_cast<ModelParts&>(environment) = ModelParts::Builtin();
  RegisterBuiltinOps(environment.ops);
  MR_TRY(environment.ops.Seal());
  MR_TRY(AddBuiltinFormats(&environment.readers));
  environment.feeds = DataFeedFactory::Builtin();
  environment.datasets = DatasetFactory::Builtin();
  environment.tables = TableFactory::Builtin();
  MR_TRY(RegisterBuiltinWorkers(environment.workers));
  MR_TRY(RegisterBuiltinTrainers(environment.trainers));
  MR_TRY(RegisterBuiltinMetrics(environment.metrics));
  return environment;
}

Environment CopyOf(const Environment& environment) {
  const NamedParts& parts = environment;
  return {{parts, environment.ops.Copy()}, environment.device, environment.plugins};
}

bool HasPlugin(const Environment& environment, const std::string& path) {
  const std::vector<std::string>& plugins = environment.plugins;
  return std::find(plugins.begin(), plugins.end(), FileOf(path)) != plugins.end();
}

Status AddPlugin(const std::string& path, Environment* environment) {
  if (HasPlugin(*environment, path)) {
    return InvalidConfig("plugin \"" + path + "\": it is loaded already; name it once");
  }
  MR_TRY(LoadPlugin(path, environment));
  environment->plugins.push_back(FileOf(path));
  return Status::Ok();
}

Result<Environment> MakeEnvironment(const std::vector<std::string>& plugins) {
  MR_ASSIGN(Environment environment, MakeDefaultEnvironment());
  environment.ops.set_plugin_advice("--plugin=FILE loads a plugin");
  for (const std::string& path : plugins) MR_TRY(AddPlugin(path, &environment));
  return environment;
}

Result<JobAndEnvironment> LoadJob(ConfigRequest request, const std::optional<std::string>& text,
                                  const Environment* base) {
  JobAndEnvironment job;
  if (base == nullptr) {
    MR_ASSIGN(job.environment, MakeDefaultEnvironment());
    job.environment.ops.set_plugin_advice("plugins: \"FILE\" in the job loads a plugin");
  } else {
    job.environment = CopyOf(*base);
    job.environment.feeds.BeginJob();
  }
  EnvironmentPlugins plugins(job.environment, request.needs_model);
  request.plugins = &plugins;
  if (request.needs_model) {
    request.judge = [&job](const ModelDesc& model, const SlotSchema& slots, bool is_of_program) {
      return JudgeModel(model, slots, job.environment.ops, job.environment, is_of_program);
    };
    request.find_deeper = [&job](const TrainerDesc& desc) { return FindDeeperMistakes(desc, job.environment); };
  }
  MR_ASSIGN(job.config, text ? LoadTrainerDescText(request.file, *text, request) : LoadTrainerDesc(request));
  return job;
}

KnownNames NamesOf(const Environment& environment) {
  KnownNames names;
  names.trainers = environment.trainers.names();
  names.device_workers = environment.workers.names();
  names.datasets = environment.datasets.names();
  names.data_feeds = environment.feeds.names();
  names.formats = environment.feeds.formats();
  names.tables = environment.tables.names();
  names.metrics = environment.metrics.names();
  names.plugin_advice = environment.ops.plugin_advice();
  return names;
}

}  // namespace millrace
