#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reader/reader_holder.h"
#include "runtime/op_kernel.h"

namespace millrace {

/// The reader variable bound to an input or output of an operator; kInvalidConfig for a variable of another kind.
Result<ReaderHolder*> InputReader(KernelContext& context, std::string_view parameter);
Result<ReaderHolder*> OutputReader(KernelContext& context, std::string_view parameter);

/// What a creating operator says of its reader's outputs: `ranks` and `shape_concat`, `lod_levels`, and `dtypes` or
/// else the types that the variable of Out declares, or else float32; `names`.
Result<std::vector<TensorSpec>> ReadTensorSpecs(const KernelContext& context);

}  // namespace millrace
