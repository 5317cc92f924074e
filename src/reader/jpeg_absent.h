#pragma once

#include <string>

#include "core/status.h"

namespace millrace {

/// kInvalidConfig for `what`, which a build without libjpeg (MILLRACE_JPEG) cannot read. Exists in such a build alone.
Status WithoutJpeg(const std::string& what);

}  // namespace millrace
