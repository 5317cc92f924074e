#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/status.h"
#include "runtime/tensor.h"

namespace millrace {

/// Looks at variables every so often while a job runs: Paddle's FetchHandler.
class FetchHandler {
 public:
  virtual ~FetchHandler() = default;
  /// Variables of worker 0 that Handle wants, by keys of its own: always the same ones.
  virtual std::map<std::string, std::string> variables() const = 0;
  /// Seconds from a call of Handle to the next one, and from the start to the first; 0: after every batch.
  virtual double period_seconds() const = 0;
  /// Called by worker 0's thread after the first batch that ends when the period is over. The tensors are there during
  /// the call, in the host's memory; what holds no tensor (a table's rows) is null. A failure ends the job.
  virtual Status Handle(const std::map<std::string, const Tensor*>& values) = 0;
};

/// The variables of a handler, for CompiledJob::Create.
inline std::vector<std::string> WatchedBy(const FetchHandler& handler) {
  std::vector<std::string> names;
  for (const auto& [key, name] : handler.variables()) names.push_back(name);
  return names;
}

}  // namespace millrace
