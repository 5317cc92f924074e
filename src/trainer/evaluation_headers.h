#pragma once

#include <stop_token>

#include "core/status.h"
#include "trainer/compiled_job.h"

namespace millrace {

/// Looks at what names the columns of the evaluation sets' files, as far as a moment reaches, so that what would end
/// the training at its first evaluation ends it before its first step. Of lines without a header there is nothing to
/// look at. Files that a command writes, or that can be read once only, are left alone; of those that the Python of a
/// format reads, a set's first is looked at. kBadData with the header's place, what the opening fails with, kCancelled.
Status CheckEvaluationHeaders(const CompiledJob& job, const std::stop_token& stop);

}  // namespace millrace
