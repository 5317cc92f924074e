#pragma once

#include <string_view>
#include <vector>

#include "core/status.h"
#include "reader/lod_tensor.h"

namespace millrace {

/// Parses the outputs of a reader: "float32[-1,64] int64[-1,1]:lod label=int64[1]", separated by blanks. ":lod" is a
/// list of values; "NAME=" is the name in the format. Fails with kInvalidConfig, naming the malformed part.
Result<std::vector<TensorSpec>> ParseTensorSpecs(std::string_view text);

}  // namespace millrace
