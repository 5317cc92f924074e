#pragma once

#include <string>

#include "config/known_names.h"
#include "core/status.h"

namespace millrace {

/// Loads the plugins that a job names, while the job is read: only then is it known which names it may use.
class PluginHost {
 public:
  virtual ~PluginHost() = default;
  /// A failure is reported at the place of the plugin in the job; kNotFound when there is no such file.
  virtual Status Load(const std::string& path) = 0;
  /// The names that there are, with those of the plugins loaded so far.
  virtual KnownNames names() const = 0;
};

}  // namespace millrace
