#pragma once

#include <string>
#include <vector>

#include "core/long_work.h"
#include "core/status.h"
#include "program/op_registry.h"
#include "runtime/scope.h"
#include "serving/feed_lists.h"

namespace millrace {

/// Fails with kInvalidConfig, naming every operator that cannot be converted to ONNX.
Status CheckOnnx(const FeedList& feed, const OpRegistry& registry);

/// Writes the program as an ONNX model (operator set 18) that returns `fetches`, with parameters from `root`; lookups
/// must use dense parameters. Fails with kInvalidConfig for an unsupported operator or parameter type or a model above
/// the format's 2 GiB, kIo if the file cannot be written, kCancelled after a stop request of `work`, leaving an
/// unfinished file.
Status WriteOnnx(const FeedList& feed, const std::vector<std::string>& fetches, const OpRegistry& registry,
                 const Scope& root, const std::string& path, const LongWork& work);

}  // namespace millrace
