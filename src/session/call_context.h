#pragma once

#include <stop_token>

#include "job/environment.h"
#include "session/process_ranks.h"

namespace millrace {

/// What one call of a script works with. A call with several ranks is a collective of them.
struct CallContext {
  const Environment& environment;  ///< outlives everything that the call creates
  const ProcessRanks& ranks;
  std::stop_token stop;  ///< ends the call with kCancelled
};

}  // namespace millrace
