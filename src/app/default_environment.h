#pragma once

#include "config/known_names.h"
#include "core/status.h"
#include "trainer/environment.h"

namespace millrace {

/// Everything that Millrace brings along, by name.
Result<Environment> MakeDefaultEnvironment();

/// The names of an environment, for checking a configuration.
KnownNames NamesOf(const Environment& environment);

}  // namespace millrace
