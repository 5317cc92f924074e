#pragma once

#include <string_view>
#include <vector>

#include "core/status.h"
#include "reader/lod_tensor.h"

namespace millrace {

/// Reads what the outputs of a reader are from text: "float32[-1,64] int64[-1,1]:lod label=int64[1]", between blanks.
/// ":lod" is a list of values; "NAME=" is what the format calls the output. kInvalidConfig names the part that is
/// wrong.
Result<std::vector<TensorSpec>> ParseTensorSpecs(std::string_view text);

}  // namespace millrace
