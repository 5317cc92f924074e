#pragma once

#include <string>
#include <vector>

#include "core/long_work.h"
#include "core/status.h"
#include "program/op_registry.h"
#include "runtime/scope.h"
#include "serving/feed_lists.h"

namespace millrace {

/// Whether a program can be an ONNX model: kInvalidConfig that names every operator which cannot.
Status CheckOnnx(const FeedList& feed, const OpRegistry& registry);

/// Writes the program as an ONNX model (operator set 18) that returns `fetches`, with parameters from `root`; lookups
/// must be in dense ones. kInvalidConfig for a model beyond the 2 GiB of such files; kCancelled when `work` is stopped,
/// which leaves the file unfinished.
Status WriteOnnx(const FeedList& feed, const std::vector<std::string>& fetches, const OpRegistry& registry,
                 const Scope& root, const std::string& path, const LongWork& work);

}  // namespace millrace
