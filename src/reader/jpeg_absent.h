#pragma once

#include <string>

#include "core/status.h"

namespace millrace {

/// Returns kInvalidConfig for `what`, which a build without libjpeg (MILLRACE_JPEG) cannot read. Exists only in such a
/// build.
Status WithoutJpeg(const std::string& what);

}  // namespace millrace
