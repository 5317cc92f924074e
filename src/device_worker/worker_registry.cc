#include "core/edit_distance.h"
#include "device_worker/device_worker.h"
#include "device_worker/hogwild_worker.h"
#include "device_worker/section_worker.h"

namespace millrace {

void WorkerRegistry::Add(std::string name, Factory factory) { factories_.emplace_back(std::move(name), factory); }

Result<std::unique_ptr<DeviceWorker>> WorkerRegistry::Create(const std::string& name, WorkerParts parts) const {
  std::string known;
  for (const auto& [registered, factory] : factories_) {
    if (registered == name) return factory(std::move(parts));
    known += (known.empty() ? "" : ", ") + registered;
  }
  return InvalidConfig("device_worker_name: there is no worker \"" + name + "\"; registered: " + known);
}

std::vector<std::string> WorkerRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [registered, factory] : factories_) names.push_back(registered);
  return names;
}

void RegisterBuiltinWorkers(WorkerRegistry& registry) {
  registry.Add("HogwildWorker", MakeHogwildWorker);
  registry.Add("SectionWorker", MakeSectionWorker);
}

}  // namespace millrace
