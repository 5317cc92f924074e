#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/known_names.h"
#include "config/trainer_desc_reader.h"
#include "core/status.h"
#include "job/environment.h"

namespace millrace {

/// Everything that Millrace brings along, by name.
Result<Environment> MakeDefaultEnvironment();

/// The same for a program with the flag --plugin, and what the plugins add that it names. Errors of AddPlugin.
Result<Environment> MakeEnvironment(const std::vector<std::string>& plugins);

/// The same once more, to which plugins may be added.
Environment CopyOf(const Environment& environment);

/// Whether this file was loaded as a plugin, under whatever name.
bool HasPlugin(const Environment& environment, const std::string& path);

/// Loads a plugin. LoadPlugin's errors; kInvalidConfig for one that is loaded already. Not thread-safe.
Status AddPlugin(const std::string& path, Environment* environment);

/// The names of an environment, for checking a configuration.
KnownNames NamesOf(const Environment& environment);

/// A job and the environment that it asks for by its `plugins`.
struct JobAndEnvironment {
  Environment environment;
  LoadedConfig config;
};

/// Reads a job and loads its plugins; request.plugins, request.judge and request.find_deeper are set here. The job is
/// `text` where there is one, and request.file its name. LoadTrainerDesc's errors. Without needs_model, only the names
/// of what reads data are checked. The job may use what `base` has, by default what Millrace brings along; plugins of
/// `base` may be named again.
Result<JobAndEnvironment> LoadJob(ConfigRequest request, const std::optional<std::string>& text = std::nullopt,
                                  const Environment* base = nullptr);

}  // namespace millrace
