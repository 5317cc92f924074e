#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>
#include <stop_token>

#include "core/status.h"
#include "job/run_hooks.h"

namespace millrace {

/// The passes and evaluations of a run as dicts, of which each of some functions of Python is told, too. Made and gone
/// under the GIL.
class RunHistory {
 public:
  explicit RunHistory(pybind11::list callbacks) : callbacks_(std::move(callbacks)) {}

  // From the thread that trains, without the GIL. A callback that raises StopTraining asks the run to stop; of another
  // exception the run fails.
  Status Add(const EvalReport& report);
  Status Add(const PassReport& report);

  std::stop_token stop() const { return stop_.get_token(); }
  void RequestStop() { stop_.request_stop(); }
  /// Whether a callback raised StopTraining.
  bool has_stopped() const { return has_stopped_; }
  /// Raises what a callback raised, if one did.
  void Rethrow() const;
  const pybind11::list& passes() const { return passes_; }
  const pybind11::list& evaluations() const { return evaluations_; }

 private:
  Status Tell(const pybind11::dict& entry);

  const pybind11::list callbacks_;
  pybind11::list passes_;
  pybind11::list evaluations_;
  std::stop_source stop_;
  std::atomic<bool> has_stopped_{false};
  std::unique_ptr<pybind11::error_already_set> raised_;
};

}  // namespace millrace
