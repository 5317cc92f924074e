#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "core/status.h"

namespace mini {

/// What a loader hands on: samples, one at a time or a batch of them at once.
template <class LoadTarget>
using LoadTargetList = std::vector<std::unique_ptr<LoadTarget>>;

/// Loads samples from somewhere, without end: behind its last sample an epoch is over, and the next one begins.
///
/// A loader derives from it; decorators that shuffle or batch are datasets, too, and own the one that they draw from.
/// One thread.
template <class LoadTarget>
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// The next samples, at least one. kCancelled soon after a stop request.
  virtual millrace::Result<LoadTargetList<LoadTarget>> Next(const std::stop_token& stop) = 0;
};

}  // namespace mini
