#include "app/default_environment.h"

#include "datafeed/multi_slot_reader.h"
#include "ops/builtin_ops.h"
#include "plugin/plugin_loader.h"
#include "reader/builtin_formats.h"
#include "trainer/trainer.h"

namespace millrace {
namespace {

/// Not sealed yet: plugins may add to it.
Result<Environment> OpenEnvironment() {
  Environment environment;
  RegisterBuiltinOps(environment.ops);
  MR_TRY(RegisterBuiltinFormats(environment.readers));
  MR_TRY(environment.readers.Add(MultiSlotFormat()));
  environment.feeds = DataFeedFactory::Builtin();
  environment.datasets = DatasetFactory::Builtin();
  RegisterBuiltinWorkers(environment.workers);
  return environment;
}

Registries RegistriesOf(Environment& environment) { return {environment.ops, environment.feeds, environment.readers}; }

/// Loads into an environment that is not sealed yet.
class EnvironmentPlugins : public PluginHost {
 public:
  EnvironmentPlugins(Environment& environment, bool needs_model)
      : environment_(environment), needs_model_(needs_model) {}

  Status Load(const std::string& path) override { return LoadPlugin(path, RegistriesOf(environment_)); }
  KnownNames names() const override {
    KnownNames names = NamesOf(environment_);
    if (needs_model_) return names;
    KnownNames of_data;
    of_data.datasets = std::move(names.datasets);
    of_data.data_feeds = std::move(names.data_feeds);
    return of_data;
  }

 private:
  Environment& environment_;
  const bool needs_model_;
};

}  // namespace

Result<Environment> MakeDefaultEnvironment() { return MakeEnvironment({}); }

Result<Environment> MakeEnvironment(const std::vector<std::string>& plugins) {
  MR_ASSIGN(Environment environment, OpenEnvironment());
  for (const std::string& path : plugins) MR_TRY(LoadPlugin(path, RegistriesOf(environment)));
  MR_TRY(environment.ops.Seal());
  return environment;
}

Result<JobAndEnvironment> LoadJob(ConfigRequest request, const std::optional<std::string>& text) {
  JobAndEnvironment job;
  MR_ASSIGN(job.environment, OpenEnvironment());
  EnvironmentPlugins plugins(job.environment, request.needs_model);
  request.plugins = &plugins;
  MR_ASSIGN(job.config, text ? LoadTrainerDescText(request.file, *text, request) : LoadTrainerDesc(request));
  MR_TRY(job.environment.ops.Seal());
  return job;
}

KnownNames NamesOf(const Environment& environment) {
  KnownNames names;
  names.trainers = TrainerNames();
  names.device_workers = environment.workers.names();
  names.datasets = environment.datasets.names();
  names.data_feeds = environment.feeds.names();
  for (const OpInfo* op : environment.ops.all()) names.operators.push_back(op->type);
  return names;
}

}  // namespace millrace
