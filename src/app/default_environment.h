#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/known_names.h"
#include "config/trainer_desc_reader.h"
#include "core/status.h"
#include "trainer/environment.h"

namespace millrace {

/// Everything that Millrace brings along, by name.
Result<Environment> MakeDefaultEnvironment();

/// The same, and what these plugins add. LoadPlugin's errors.
Result<Environment> MakeEnvironment(const std::vector<std::string>& plugins);

/// The names of an environment, for checking a configuration.
KnownNames NamesOf(const Environment& environment);

/// A job and the environment that it asks for by its `plugins`.
struct JobAndEnvironment {
  Environment environment;
  LoadedConfig config;
};

/// Reads a job and loads its plugins; request.known and request.plugins are set here. The job is `text` where there is
/// one, and request.file its name. LoadTrainerDesc's errors. Without needs_model, only the names of what reads data are
/// checked.
Result<JobAndEnvironment> LoadJob(ConfigRequest request, const std::optional<std::string>& text = std::nullopt);

}  // namespace millrace
